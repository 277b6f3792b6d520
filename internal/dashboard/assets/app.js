// What a script adds: times in the viewer's own zone, pages that follow what is under way, and answers
// while one types. Every page works without it.
(() => {
  "use strict";
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  // The server writes times in the zone that the cookie names. On the first view there is none yet.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const localise = () => {
    const shown = $("[data-zone]");
    if (!zone || !shown || shown.dataset.zone === zone) return;
    document.cookie = `zone=${encodeURIComponent(zone)}; path=/; max-age=31536000; samesite=lax` +
      (location.protocol === "https:" ? "; secure" : "");
    const words = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
    const exact = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });
    for (const time of $$("time")) {
      if (!time.dateTime.includes("T") || time.closest("[data-fixed]")) continue; // a day is the same day everywhere
      const at = new Date(time.dateTime);
      if (!("ago" in time.dataset)) time.textContent = ("exact" in time.dataset ? exact : words).format(at);
      time.title = exact.format(at);
    }
    const renamed = { Calcutta: "Kolkata", Katmandu: "Kathmandu", Saigon: "Ho_Chi_Minh", Rangoon: "Yangon", Kiev: "Kyiv" }; // as the server names them
    if (!$("[data-fixed]")) shown.textContent = "your time zone, " + zone.replace(/[^/]+$/, (city) => renamed[city] || city);
  };

  const fragment = async (address, live) => {
    const answer = await fetch(address, { headers: live ? { "X-Fragment": "live" } : {}, redirect: "error" });
    if (!answer.ok) throw new Error(answer.status);
    return { text: await answer.text(), live: answer.headers.has("X-Fragment") };
  };
  const put = (text, into) => {
    const parsed = new DOMParser().parseFromString(text, "text/html");
    into.replaceChildren(...parsed.body.childNodes);
  };

  // Buttons that copy are there where something can be copied.
  const copyable = (within) => navigator.clipboard && $$("[data-copy]", within).forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      $("#said").textContent = "Copied";
      button.classList.add("done");
    });
  });

  // Until when something may be done is counted down, by the server's clock as it was when the page came.
  const skew = Date.parse(document.body.dataset.now) - Date.now();
  const countdown = (within) => $$("[data-until]", within).forEach((span) => {
    const tick = () => {
      const left = Math.ceil((Date.parse(span.dataset.until) - Date.now() - skew) / 1000);
      if (!span.isConnected) return;
      span.parentElement.hidden = left <= 0;
      if (left <= 600) span.textContent = `for ${left} s`;
      if (left > 0) setTimeout(tick, 1000);
    };
    tick();
  });

  // A region that is under way is fetched again, less and less often, until it is done.
  const follow = (region) => {
    let wait = 1500, last = "";
    const say = () => {
      const status = $("[data-status]", region);
      if (status && status.textContent !== region.dataset.said) {
        region.dataset.said = status.textContent;
        $("#said").textContent = status.textContent;
      }
    };
    const status = $("[data-status]", region);
    region.dataset.said = status ? status.textContent : "";
    const replace = (text) => {
      const focused = region.contains(document.activeElement) && document.activeElement;
      const key = focused && (focused.id || focused.getAttribute("href"));
      const open = $$("details[open]", region).map((d) => d.id);
      put(text, region);
      copyable(region);
      countdown(region);
      for (const id of open) { const d = document.getElementById(id); if (d) d.open = true; }
      if (focused) { // the focus stays in the region
        region.tabIndex = -1;
        const same = (e) => e.id === key || e.getAttribute("href") === key;
        (($$("[id],[href]", region).find(same)) || region).focus({ preventScroll: true });
      }
      say();
    };
    const look = async () => {
      let going = true;
      try {
        if (!document.hidden) {
          const answer = await fragment(location.href, true);
          if (answer.text !== last) replace(answer.text);
          last = answer.text;
          going = answer.live;
        }
      } catch { /* the network is gone for a moment, or we are signed out: a reload tells */ }
      wait = Math.min(wait * 1.4, 30000);
      if (going) setTimeout(look, wait);
    };
    setTimeout(look, wait);
  };

  // An input that names an address gets its answer into the element that it names, a moment after typing.
  const ask = (input) => {
    const into = document.getElementById(input.dataset.into);
    let timer, asked = 0;
    const go = async () => {
      const number = ++asked;
      try {
        const { text } = await fragment(`${input.dataset.ask}${encodeURIComponent(input.value)}`);
        if (number === asked) put(text, into);
      } catch { if (number === asked) into.replaceChildren(); }
    };
    input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(go, 250); });
    if (input.value) go();
  };

  // A button of a passkey is there where the browser has passkeys. It learns what to sign, has the browser sign it or make a key,
  // and sends its form with the answer.
  const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  const base64 = (buffer) => buffer && btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
  const keys = (list) => (list || []).map((key) => ({ ...key, id: bytes(key.id) }));
  const answerOf = (key) => {
    const r = key.response;
    return JSON.stringify({ id: key.id, rawId: base64(key.rawId), type: key.type, response: {
      clientDataJSON: base64(r.clientDataJSON), attestationObject: base64(r.attestationObject), transports: r.getTransports && r.getTransports(),
      authenticatorData: r.signature && base64(r.authenticatorData), signature: base64(r.signature), userHandle: base64(r.userHandle),
    } });
  };
  const create = async (o) => ["attestation", await navigator.credentials.create({ publicKey: {
    ...o, challenge: bytes(o.challenge), user: { ...o.user, id: bytes(o.user.id) }, excludeCredentials: keys(o.excludeCredentials),
  } })];
  const sign = async (o) => ["assertion", await navigator.credentials.get({ publicKey: {
    ...o, challenge: bytes(o.challenge), allowCredentials: keys(o.allowCredentials),
  } })];
  const whyNot = {
    InvalidStateError: "This device has a passkey of yours already.",
    NotAllowedError: "No passkey answered. Try again, or use another way.",
    SecurityError: /^[\d.]+$|:/.test(location.hostname)
      ? `Browsers have passkeys for names alone. On this machine, open http://localhost:${location.port}.` : "Passkeys belong to the public address of this site. Open it there.",
  };
  const passkey = (button) => {
    const form = button.form;
    const codes = $$("[name=code]", form);
    const problem = document.createElement("p");
    problem.className = "error";
    problem.setAttribute("role", "alert");
    problem.hidden = true;
    button.hidden = false;
    button.after(problem);
    button.addEventListener("click", async () => {
      codes.forEach((code) => { code.required = false; });
      const whole = form.reportValidity();
      codes.forEach((code) => { code.required = true; });
      if (!whole) return;
      button.disabled = true;
      problem.hidden = true;
      try {
        let options = button.dataset.create;
        if (!options) {
          const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { "X-Passkey": "options" } });
          if ((answer.headers.get("Content-Type") || "").includes("json")) options = await answer.text();
        }
        if (options) { // else the form itself says what is wrong
          const [name, key] = await (button.dataset.create ? create : sign)(JSON.parse(options));
          $$(`[name=${name}]`, form).forEach((old) => old.remove());
          form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value: answerOf(key) }));
        }
        codes.forEach((code) => { code.required = false; });
        form.requestSubmit();
      } catch (error) {
        problem.textContent = whyNot[error.name] || "That did not work. Try again, or use another way.";
        problem.hidden = false;
        button.disabled = false;
      }
    });
  };
  if (window.PublicKeyCredential) $$("[data-passkey]").forEach(passkey);

  localise();
  $$("[data-live]").forEach(follow);
  $$("[data-ask]").forEach(ask);
  $$("input[name=role]").forEach((choice) => choice.addEventListener("change", () => $$("[data-role]").forEach((link) => {
    const to = new URL(link.href);
    to.searchParams.set("role", choice.value);
    link.href = to;
    $("[data-as]", link).textContent = `as a ${choice.value}`;
  })));
  $$("[data-print]").forEach((button) => { button.hidden = false; button.addEventListener("click", () => print()); });
  copyable(document);
  countdown(document);
  document.addEventListener("submit", (event) => {
    const button = event.submitter;
    if (button && event.target.method === "post") setTimeout(() => { button.disabled = true; }, 0);
  });
  addEventListener("pageshow", () => {
    $$("button[disabled]").forEach((button) => { button.disabled = false; });
    $$("[name=assertion], [name=attestation]").forEach((answer) => answer.remove()); // each is good once
  });
})();
