// Lets a reader send the request that they are reading about. Nothing is stored: the credential lives
// in the input, and goes nowhere but to this service.
"use strict";

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

for (const form of document.querySelectorAll("form.try")) {
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const output = document.createElement("pre");
    try {
      output.textContent = await send(form.closest("article"), form);
    } catch (problem) {
      output.textContent = `The request could not be sent: ${problem.message}`;
    }
    form.querySelector("output").replaceChildren(output);
  });
}
