// Remembers the language of the samples, copies them, filters the contents, and sends the request that a reader is
// reading about. The credential lives in its input, and goes nowhere but to this service.
"use strict";

const remembered = "docs-language";

for (const choice of document.querySelectorAll("input[name=language]")) {
  try {
    if (localStorage.getItem(remembered) === choice.value) choice.checked = true;
  } catch {
    // this browser keeps nothing
  }
  choice.addEventListener("change", () => {
    try {
      localStorage.setItem(remembered, choice.value);
    } catch {
      // as above
    }
  });
}

if (navigator.clipboard) {
  for (const block of document.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 2000);
    });
    block.append(button);
  }
}

const contents = document.getElementById("contents");
const filter = document.getElementById("filter");
const opened = new Set([...contents.querySelectorAll("details[open]")]);
filter.hidden = false;
filter.addEventListener("input", () => {
  const wanted = filter.value.trim().toLowerCase();
  for (const group of contents.querySelectorAll("details")) {
    let found = 0;
    for (const item of group.querySelectorAll("li")) {
      item.hidden = !`${item.textContent} ${item.firstElementChild.href}`.toLowerCase().includes(wanted);
      if (!item.hidden) found++;
    }
    group.hidden = found === 0;
    group.open = wanted ? found > 0 : opened.has(group);
  }
});
contents.addEventListener("click", (event) => {
  if (event.target.closest("a") && contents.matches(":popover-open")) contents.hidePopover();
});

function addressOf(article, form) {
  let path = article.dataset.path;
  const query = new URLSearchParams();
  const headers = {};
  for (const input of form.querySelectorAll("input[data-in]")) {
    if (input.dataset.in === "path") {
      path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    } else if (input.value !== "" && input.dataset.in === "query") {
      query.set(input.name, input.value);
    } else if (input.value !== "") {
      headers[input.name] = input.value;
    }
  }
  const search = query.toString();
  return { url: search ? `${path}?${search}` : path, headers };
}

async function send(article, form) {
  const { url, headers } = addressOf(article, form);
  const credential = document.getElementById("credential").value.trim();
  if (credential) headers.Authorization = `Bearer ${credential}`;
  const body = form.elements.body?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(url, { method: article.dataset.method, headers, body, redirect: "manual" });
  if (response.type === "opaqueredirect") return "A redirect: open the address in the browser to follow it.";
  const text = await response.text();
  let shown = text;
  try {
    shown = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // not JSON: shown as it came
  }
  return `${response.status} ${response.statusText}\nX-Request-Id: ${response.headers.get("X-Request-Id")}\n\n${shown}`;
}

for (const block of document.querySelectorAll(".try")) {
  block.hidden = false;
  block.addEventListener("submit", async (event) => {
    event.preventDefault();
    const form = event.target;
    if (form === block) return; // the credential alone
    const output = document.createElement("pre");
    try {
      output.textContent = await send(form.closest("article"), form);
    } catch (problem) {
      output.textContent = `The request could not be sent: ${problem.message}`;
    }
    form.querySelector("output").replaceChildren(output);
  });
}
