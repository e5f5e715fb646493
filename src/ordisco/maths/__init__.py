"""The mathematics: the equations of the paper, the unlabelled losses, the penalties, as functions of tensors."""
