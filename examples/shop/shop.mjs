// A small marketplace. Its sellers earn 90 % of each price; Bursar knows what they earned, and pays them.
import { randomUUID } from "node:crypto";

import { externalId, majorUnits, minorUnits, verifyWebhook, WebhookError } from "bursar";
import express from "express";

const sellers = [
  { id: "asha", name: "Asha Rao", account: "50100123456789" },
  { id: "ravi", name: "Ravi Shah", account: "50100123456780" },
];
const products = [
  { id: "scarf", name: "Block-printed scarf", price: 899, seller: "asha" },
  { id: "lamp", name: "Clay lamp, set of six", price: 450.5, seller: "asha" },
  { id: "shelf", name: "Mango wood shelf", price: 6200, seller: "ravi" },
];

/** What the seller earns of a price, counted in paise: 10 % is the shop's, rounded down. */
const earned = (price) => majorUnits(minorUnits(price) - Math.floor(minorUnits(price) / 10));

/** Has Bursar know the sellers and their bank accounts. It is safe to repeat. */
export async function openSellers(bursar) {
  for (const { id, name, account } of sellers) {
    await bursar.createSeller({ externalId: id, name, email: `${id}@shop.example` });
    if ((await bursar.balance(externalId(id))).bankAccount.accountNumber === "") {
      await bursar.registerBankAccount(externalId(id), { accountHolder: name, accountNumber: account, ifsc: "HDFC0000053" });
    }
  }
}

/** Makes the shop's web application. */
export function newShop(bursar) {
  const app = express();
  const events = new Map(); // by id, since a delivery may come twice
  app.disable("x-powered-by");

  app.get("/", (request, response) => {
    const bought = products.find((p) => p.id === request.query.bought);
    response.send(
      page("Shop", [
        bought ? html`<p role="status">Thank you. ${sellerOf(bought).name} earned ${rupees(earned(bought.price))} from ${bought.name}.</p>` : "",
        html`<ul class="cards">${products.map(
          (p) => html`<li><h2>${p.name}</h2><p>${rupees(p.price)} from <a href="/sellers/${p.seller}">${sellerOf(p).name}</a></p>
            <form method="post" action="/buy/${p.id}"><button>Buy</button></form></li>`,
        )}</ul>`,
        html`<h2>What Bursar told the shop</h2>`,
        events.size === 0
          ? html`<p>Nothing yet. Webhooks appear here, newest first.</p>`
          : html`<ol class="events">${[...events.values()].reverse().slice(0, 10).map((e) => html`<li><code>${e.type}</code> ${aboutOf(e)}</li>`)}</ol>`,
      ]),
    );
  });

  app.post("/buy/:product", async (request, response) => {
    const product = products.find((p) => p.id === request.params.product);
    if (!product) return response.status(404).send(page("Not found", [html`<p>There is no such product.</p>`]));
    // A real shop stores the order first, and records its sale under the order's id as often as it takes.
    await bursar.recordSale({ saleId: randomUUID(), sellerId: externalId(product.seller), amount: earned(product.price), occurredAt: new Date().toISOString() });
    response.redirect(303, `/?bought=${product.id}`);
  });

  app.get("/sellers/:seller", async (request, response) => {
    const seller = sellers.find((s) => s.id === request.params.seller);
    if (!seller) return response.status(404).send(page("Not found", [html`<p>There is no such seller.</p>`]));
    const id = externalId(seller.id);
    const [balance, { blockers }, { payouts }] = await Promise.all([bursar.balance(id), bursar.explain(id), bursar.payouts(id, { limit: 5 })]);
    response.send(
      page(seller.name, [
        html`<dl><dt>Available</dt><dd>${rupees(balance.availableBalance)}</dd><dt>Pending</dt><dd>${rupees(balance.pendingBalance)}</dd>
          <dt>Paid out</dt><dd>${rupees(balance.totalWithdrawn)}</dd></dl>`,
        blockers.length === 0
          ? html`<p>The money can be withdrawn to ${balance.bankAccount.accountNumber}.</p>`
          : html`<ul>${blockers.map((b) => html`<li>${b.message} ${b.action ?? ""}</li>`)}</ul>`,
        html`<form method="post" action="/sellers/${seller.id}/open"><button>Open my payouts</button></form>`,
        html`<h2>Payouts</h2>`,
        payouts.length === 0 ? html`<p>None yet.</p>` : html`<ul>${payouts.map((p) => html`<li>${rupees(p.amount)} ${p.status}</li>`)}</ul>`,
      ]),
    );
  });

  // A real shop does this for the seller who is signed in, and for nobody else.
  app.post("/sellers/:seller/open", async (request, response) => {
    const seller = sellers.find((s) => s.id === request.params.seller);
    if (!seller) return response.status(404).send(page("Not found", [html`<p>There is no such seller.</p>`]));
    response.redirect(303, (await bursar.sessionLink(externalId(seller.id))).url);
  });

  app.post("/bursar", express.raw({ type: "application/json", limit: "1mb" }), (request, response) => {
    try {
      const event = verifyWebhook(request.body, request.headers, app.get("webhook secret"));
      events.set(event.id, event);
      response.sendStatus(204);
    } catch (problem) {
      if (!(problem instanceof WebhookError)) throw problem;
      response.status(400).send(problem.message);
    }
  });

  app.use((problem, request, response, _next) => {
    console.error(problem);
    response.status(500).send(page("Something failed", [html`<p>Try again in a moment.</p>`]));
  });
  return app;
}

const sellerOf = (product) => sellers.find((s) => s.id === product.seller);
const rupees = (amount) => new Intl.NumberFormat("en-IN", { style: "currency", currency: "INR" }).format(amount);

function aboutOf(event) {
  const { data } = event;
  return html`${data.externalId ?? ""} ${data.amount === undefined ? "" : rupees(data.amount)}`;
}

/** A piece of HTML. */
class Markup {
  constructor(text) {
    this.text = text;
  }
}

/** Writes HTML. What is put in is escaped, unless it is a piece of HTML itself. */
function html(texts, ...values) {
  return new Markup(texts.map((text, i) => text + (i < values.length ? markup(values[i]) : "")).join(""));
}

function markup(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(markup).join("");
  return String(value).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

function page(title, parts) {
  return html`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<style>
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 0 auto; padding: 1rem; color: #222; background: #fdfcfa; }
  h1 { font-size: 1.6rem; } h2 { font-size: 1.1rem; margin: 1.5rem 0 .25rem; } .cards h2 { margin-top: 0; }
  a { color: #1a5f4a; }
  .cards { list-style: none; padding: 0; display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); }
  .cards li { border: 1px solid #d8d2c8; border-radius: .5rem; padding: 1rem; background: #fff; }
  .cards p { margin: 0 0 .75rem; }
  button { font: inherit; padding: .5rem 1rem; border: 0; border-radius: .4rem; background: #1a5f4a; color: #fff; cursor: pointer; }
  [role=status] { background: #e4f2ec; padding: .75rem 1rem; border-radius: .4rem; }
  dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; } dd { margin: 0; font-variant-numeric: tabular-nums; }
  .events { padding-left: 1.25rem; }
</style>
<header><a href="/">All products</a></header>
<main><h1>${title}</h1>${parts}</main>
</html>`.text;
}
