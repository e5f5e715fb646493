"use strict";
// The page keeps nothing: it shows the state that the server sends, and sends answers. An answer is on the disk before
// the next image is shown.

const $ = (id) => document.getElementById(id);
const STORE = "token";
let token = location.hash.slice(1) || sessionStorage.getItem(STORE) || "";
let state = null;
let busy = false;
let over = false;
const pictures = new Map(); // image number → promise of a blob's address

if (location.hash) {
  sessionStorage.setItem(STORE, token); // so that the page can be loaded again, in this tab only
  history.replaceState(null, "", "/");
}

async function ask(path, body) {
  const options = { headers: { "x-ordisco-token": token } };
  if (body !== undefined) {
    options.method = "POST";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({}));
    throw Object.assign(new Error(said.error || `error ${answer.status}`), { state: said.state, status: answer.status });
  }
  return answer;
}

function picture(number) {
  if (!pictures.has(number)) {
    const load = ask(`/image/${number}`).then((a) => a.blob()).then((blob) => URL.createObjectURL(blob));
    load.catch(() => {});
    pictures.set(number, load);
    if (pictures.size > 16) {
      const [oldest, url] = pictures.entries().next().value;
      pictures.delete(oldest);
      url.then((u) => URL.revokeObjectURL(u)).catch(() => {});
    }
  }
  return pictures.get(number);
}

async function show(next) {
  const before = state && state.image;
  state = next;
  $("count").textContent = `${state.done.toLocaleString("en")} of ${state.total.toLocaleString("en")}`;
  $("fill").style.width = `${(100 * state.done) / Math.max(1, state.total)}%`;
  $("bar").setAttribute("aria-valuemax", state.total);
  $("bar").setAttribute("aria-valuenow", state.done);
  const all = state.image === null;
  $("work").hidden = all;
  $("message").hidden = !all;
  if (all) {
    const labelled = state.done - state.skipped;
    message("That was the last one", `${labelled} labelled, ${state.skipped} skipped. Everything is saved.`);
    $("finish").hidden = false;
    $("undo-last").hidden = !state.last;
    return;
  }
  classes();
  $("undo").disabled = !state.last;
  $("last").textContent = !state.last ? "" : state.last.label === null ? "Last: skipped" : `Last: ${state.last.label}`;
  guess();
  if (state.image !== before) await draw(state.image);
  for (const number of state.ahead) picture(number).catch(() => {});
}

function guess() {
  const line = $("guess");
  line.replaceChildren();
  if (!state.guess) return;
  const name = document.createElement("b");
  name.textContent = state.guess.label;
  const key = document.createElement("kbd");
  key.textContent = "enter";
  line.append("The model says ", name, `, ${Math.round(100 * state.guess.confidence)} %  `, key);
}

async function draw(number) {
  const image = $("image");
  image.classList.add("waiting");
  $("broken").hidden = true;
  try {
    const url = await picture(number);
    if (!state || state.image !== number) return;
    image.src = url;
    await image.decode();
    image.classList.toggle("small", image.naturalWidth <= 128 && image.naturalHeight <= 128);
    image.classList.remove("waiting");
    image.dataset.number = number;
  } catch {
    if (state && state.image === number) $("broken").hidden = false;
  }
}

// A class that is named by a digit has that key; the others have the free ones from 1 to 9, in their order.
function keys() {
  const names = state.classes.map((each) => each.name);
  const found = new Map(names.filter((name) => /^[0-9]$/.test(name)).map((name) => [name, name]));
  const free = [..."123456789"].filter((key) => !found.has(key));
  for (const name of names) if (!found.has(name) && free.length) found.set(name, free.shift());
  return found;
}

function filtered() {
  const text = $("name").value.trim().toLocaleLowerCase();
  return state.classes.filter((each) => each.name.toLocaleLowerCase().includes(text));
}

function classes() {
  const list = $("classes");
  const found = filtered();
  const keyOf = keys();
  list.replaceChildren(
    ...found.map((each) => {
      const item = document.createElement("li");
      const button = document.createElement("button");
      const key = document.createElement("kbd");
      const name = document.createElement("span");
      const count = document.createElement("i");
      button.type = "button";
      key.textContent = keyOf.get(each.name) || "·";
      if (!keyOf.has(each.name)) key.className = "none";
      name.textContent = each.name;
      count.textContent = each.count || "";
      button.title = each.name;
      if (state.guess && state.guess.label === each.name) button.className = "guess";
      button.append(key, name, count);
      button.addEventListener("click", () => answer(each.name));
      item.append(button);
      return item;
    }),
  );
  const text = $("name").value.trim();
  const exact = state.classes.some((each) => each.name.toLocaleLowerCase() === text.toLocaleLowerCase());
  $("empty").hidden = !(text && !exact) && state.classes.length > 0;
  const first = found.length ? ` Tab takes “${found[0].name}”.` : "";
  $("empty").textContent = text ? `Enter adds the class “${text}”.${first}` : "No classes yet: type the first one.";
}

async function send(path, body) {
  if (busy || over || !state) return;
  busy = true;
  $("error").hidden = true;
  try {
    await show(await (await ask(path, body)).json());
  } catch (error) {
    if (error.state) await show(error.state);
    if (error.status !== 409) fail(error);
  } finally {
    busy = false;
  }
}

function answer(label) {
  if (!state || state.image === null) return;
  $("name").value = "";
  $("name").blur();
  send("/answer", { image: state.image, label });
}

function undo() {
  send("/undo", {});
}

async function close() {
  if (over) return;
  try {
    await ask("/close", {});
    over = true;
    $("work").hidden = true;
    $("message").hidden = false;
    $("finish").hidden = $("undo-last").hidden = $("close").hidden = true;
    message("Saved", "You can close this tab. The terminal says how to learn from these labels.");
  } catch (error) {
    fail(error);
  }
}

function message(headline, detail) {
  $("message").hidden = false;
  $("headline").textContent = headline;
  $("detail").textContent = detail;
}

function fail(error) {
  const lost = error instanceof TypeError; // fetch could not reach the server
  $("error").textContent = lost ? "The server does not answer. Is `ordisco label` still running? Nothing is lost." : error.message;
  $("error").hidden = false;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !state) return;
  const typing = document.activeElement === $("name");
  if (event.key === "Escape") {
    $("name").value = "";
    $("name").blur();
    classes();
  } else if (typing && event.key === "Tab" && $("name").value.trim() && filtered().length) {
    event.preventDefault();
    $("name").value = filtered()[0].name;
    classes();
  } else if (typing || event.repeat) {
    return;
  } else if (/^[0-9]$/.test(event.key)) {
    for (const [name, key] of keys()) if (key === event.key) return answer(name);
  } else if (event.key === "Enter" && document.activeElement === document.body) {
    if (state.guess) answer(state.guess.label);
  } else if (event.key === " " && document.activeElement === document.body) {
    event.preventDefault();
    answer(null);
  } else if (event.key === "z" || event.key === "Backspace") {
    undo();
  } else if (event.key === "/" || (event.key.length === 1 && /\p{L}/u.test(event.key))) {
    $("name").focus();
    if (event.key === "/") event.preventDefault();
  }
});

$("new").addEventListener("submit", (event) => {
  event.preventDefault();
  const text = $("name").value.trim();
  if (!text) return;
  answer(text); // the server knows a class whatever its case
});
$("name").addEventListener("input", () => state && classes());
$("skip").addEventListener("click", () => { document.activeElement.blur(); answer(null); });
$("undo").addEventListener("click", () => { document.activeElement.blur(); undo(); });
$("undo-last").addEventListener("click", undo);
$("close").addEventListener("click", close);
$("finish").addEventListener("click", close);

ask("/state")
  .then((a) => a.json())
  .then(show)
  .catch((error) => {
    if (error.status !== 403) return fail(error);
    $("close").hidden = true;
    message("Use the link from the terminal", "This page opens with the link that `ordisco label` prints.");
  });
