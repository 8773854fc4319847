"use strict";
// Draws /v1/openapi.json. All text goes in as text nodes, never as markup.

const $ = (id) => document.getElementById(id);

function el(name, attrs, ...children) {
  const e = document.createElement(name);
  for (const [k, v] of Object.entries(attrs || {})) {
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else if (v !== undefined && v !== false) e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.filter((c) => c !== null && c !== undefined));
  return e;
}

let doc;

function resolve(schema) {
  while (schema && schema.$ref) {
    schema = schema.$ref.slice(2).split("/").reduce((at, key) => at[key], doc);
  }
  return schema && schema.allOf ? merged(schema.allOf.map(resolve)) : schema || {};
}

// merged is one object with what several have.
const merged = (all) => ({ type: "object", properties: Object.assign({}, ...all.map((s) => s.properties)),
  required: all.flatMap((s) => s.required || []) });

// responses and examplesOf list what an operation and a media type have, components resolved.
const responses = (op) => Object.entries(op.responses).sort().map(([status, r]) => [status, resolve(r)]);
const examplesOf = (media) => Object.entries(media.examples || {}).map(([name, e]) => [name, resolve(e)]);

// kind says what a value may be, with its bounds.
function kind(schema) {
  const s = resolve(schema);
  if (s.anyOf || s.oneOf) return (s.anyOf || s.oneOf).map(kind).join(" or ");
  let text = [].concat(s.type || "any").join(" or ");
  if (s.items) text += " of " + kind(s.items);
  if (s.format && s.format.includes("date")) text += ", " + s.format;
  if (s.enum) text += ": " + s.enum.map(String).join(", ");
  const bounds = [];
  const bound = (key, words) => { if (s[key] !== undefined) bounds.push(words + " " + s[key]); };
  bound("minimum", "from"); bound("exclusiveMinimum", "above"); bound("maximum", "to");
  bound("minLength", "at least"); bound("maxLength", "at most"); bound("minItems", "at least"); bound("maxItems", "at most");
  if (s.minLength !== undefined || s.maxLength !== undefined) bounds.push("characters");
  if (s.minItems !== undefined || s.maxItems !== undefined) bounds.push("items");
  if (s.default !== undefined) bounds.push("default " + JSON.stringify(s.default));
  return bounds.length ? text + " (" + bounds.join(" ") + ")" : text;
}

// dataOf is the data of a success, whose envelope all operations share.
const dataOf = (schema) => ((schema.allOf || []).find((s) => s.properties) || { properties: { data: schema } }).properties.data;

// inner is the object that a schema nests, behind lists and null.
function inner(schema) {
  const s = resolve(schema);
  if (s.properties) return s;
  if (s.items) return inner(s.items);
  return (s.anyOf || s.oneOf || []).map(inner).find((x) => x) || null;
}

function fields(schema, depth) {
  const forms = resolve(schema).oneOf;
  if (forms) return el("div", {}, ...forms.flatMap((f) => [el("p", { class: "soft" }, resolve(f).description || ""), fields(f, depth)]));
  const s = inner(schema);
  if (!s) return el("p", { class: "soft" }, kind(schema));
  return el("ul", { class: "fields" }, ...Object.entries(s.properties).map(([name, p]) => {
    const nested = inner(p);
    const text = p.description || resolve(p).description;
    return el("li", {},
      el("code", {}, name),
      el("span", { class: "kind" }, nested ? (resolve(p).items ? "list of objects" : "object") : kind(p)),
      (s.required || []).includes(name) && depth >= 0 ? null : el("span", { class: "kind" }, "optional"),
      text ? el("div", { class: "doc" }, text) : null,
      nested ? el("details", { open: depth === 0 && Object.keys(nested.properties).length < 9 },
        el("summary", {}, Object.keys(nested.properties).length + " fields"), fields(p, depth + 1)) : null);
  }));
}

// paint shows JSON with its parts told apart.
function paint(value) {
  const pre = el("pre", { tabindex: "0" });
  const text = JSON.stringify(value, null, 2);
  const part = /("(?:[^"\\]|\\.)*")(\s*:)?|(-?\d[\d.eE+-]*)|(true|false|null)/g;
  let last = 0;
  for (const m of text.matchAll(part)) {
    pre.append(text.slice(last, m.index));
    const name = m[2] ? "key" : m[1] ? "str" : m[3] ? "num" : "lit";
    pre.append(el("span", { class: name }, m[1] || m[0]), m[2] || "");
    last = m.index + m[0].length;
  }
  pre.append(text.slice(last));
  return pre;
}

// What an operation does not name is that of all.
const credentials = (op) => op.security || doc.security || [];

function curl(verb, path, op, example) {
  const lines = [`curl ${verb === "GET" ? "" : "-X " + verb + " "}'${location.origin}${base()}${path}'`];
  if (credentials(op).length) lines.push("  -H 'X-API-Key: ak_…'");
  if (example !== undefined) lines.push("  -H 'Content-Type: application/json'", `  -d '${JSON.stringify(example)}'`);
  if (responses(op).some(([, r]) => r.content && r.content["image/png"])) lines.push("  -o picture.png");
  return lines.join(" \\\n");
}

const base = () => (doc.servers && doc.servers[0].url.replace(/^https?:\/\/[^/]+/, "")) || "";

function pathOf(path) {
  const out = el("span", { class: "path" });
  for (const part of (base() + path).split(/(\{[^}]*\})/)) out.append(part.startsWith("{") ? el("i", {}, part) : part);
  return out;
}

function operation(verb, path, op) {
  const body = op.requestBody && op.requestBody.content["application/json"];
  const shown = el("div");
  const tabs = el("div", { class: "tabs", role: "group", "aria-label": "Example answers" });
  const show = (value, button) => {
    for (const b of tabs.children) b.setAttribute("aria-pressed", b === button ? "true" : "false");
    shown.replaceChildren(paint(value));
  };
  const errors = el("ul", { class: "errors" });
  let data = null;
  for (const [status, r] of responses(op)) {
    const media = r.content && r.content["application/json"];
    if (!media) {
      shown.append(el("p", { class: "soft" }, r.description));
      continue;
    }
    const examples = media.example ? [["reply", { value: media.example }]] : examplesOf(media);
    if (status < "300") {
      const shape = dataOf(media.schema);
      const size = (x) => (x && inner(x) ? Object.keys(inner(x).properties).length : 0);
      if (!data || size(shape) > size(data)) data = shape;
      examples.forEach(([, e], i) => tabs.append(el("button", { type: "button", title: r.description,
        onclick: (ev) => show(e.value, ev.currentTarget) }, i ? status + "′" : status)));
      continue;
    }
    for (const [code, e] of examples) {
      errors.append(el("li", {}, el("b", {}, status), el("button", { type: "button", onclick: () => show(e.value) }, code),
        el("span", {}, e.value.error.message)));
    }
  }
  const params = (op.parameters || []).map(resolve).map((p) => el("li", {}, el("code", {}, p.name),
    el("span", { class: "kind" }, p.in + ", " + kind(p.schema)), p.required ? null : el("span", { class: "kind" }, "optional"),
    el("div", { class: "doc" }, p.description || (p.schema && p.schema.description) || "")));
  const scope = op["x-required-permission"];
  const fill = (details) => {
    if (details.dataset.drawn) return;
    details.dataset.drawn = "1";
    details.append(el("div", { class: "inside" },
      el("div", { class: "wide" },
        op.description ? el("p", {}, op.description) : null,
        el("p", {}, el("span", { class: "pill" }, credentials(op).length
          ? "X-API-Key or Bearer" + (scope ? ", permission " + scope : "") : "no credential"))),
      el("div", {},
        params.length ? el("h3", {}, "Parameters") : null, params.length ? el("ul", { class: "fields" }, ...params) : null,
        body ? el("h3", {}, "Body") : null, body ? fields(body.schema, 0) : null,
        data ? el("h3", {}, "Answer, in data") : null, data ? fields(data, 0) : null),
      el("div", {},
        el("h3", {}, "Call"), el("pre", { class: "call" }, curl(verb, path, op, body && body.example)),
        el("h3", {}, "Answer"), tabs, shown,
        el("h3", {}, "Refusals"), errors)));
    if (tabs.firstChild) tabs.firstChild.click();
  };
  const details = el("details", { ontoggle: (e) => { if (e.currentTarget.open) fill(e.currentTarget); } },
    el("summary", {}, el("span", { class: "verb " + verb }, verb), pathOf(path), el("span", { class: "name" }, op.summary)));
  return el("article", { id: op.operationId }, details);
}

function draw() {
  document.title = $("title").textContent = $("heading").textContent = doc.info.title;
  $("facts").append("Version " + doc.info.version + " · base path ", el("code", {}, base()), " · ",
    el("a", { href: "/v1/openapi.json" }, "openapi.json"));
  for (const p of doc.info.description.split(/\n\s*\n/)) $("about").append(el("p", {}, p));
  const codes = new Map();
  const all = [];
  for (const [path, item] of Object.entries(doc.paths)) {
    for (const verb of ["get", "post", "put", "patch", "delete"]) {
      const op = item[verb];
      if (!op) continue;
      all.push({ verb: verb.toUpperCase(), path, op });
      for (const [status, r] of responses(op)) {
        const media = r.content && r.content["application/json"];
        if (status < "400" || !media) continue;
        for (const [code, e] of examplesOf(media)) codes.set(code, [status, e.value.error.message]);
      }
    }
  }
  // What a reader does first comes first: registering, and the service itself after everything that one does with it.
  const own = (tag) => tag.name === "service";
  for (const tag of [...doc.tags].sort((a, b) => own(a) - own(b))) {
    const mine = all.filter((o) => o.op.tags[0] === tag.name);
    mine.sort((a, b) => (b.op.operationId === "register") - (a.op.operationId === "register"));
    const section = el("section", {}, el("h2", {}, tag.name), el("p", { class: "tag-doc" }, tag.description));
    const list = el("ul");
    for (const o of mine) {
      o.node = operation(o.verb, o.path, o.op);
      o.link = el("li", {}, el("a", { href: "#" + o.op.operationId, onclick: () => { o.node.firstChild.open = true; } },
        el("span", { class: "verb " + o.verb }, o.verb), o.op.summary));
      o.text = JSON.stringify([o.path, o.op.operationId, o.op.summary, o.op.description, (o.op.parameters || []).map(resolve), Object.keys(o.op.responses)])
        + JSON.stringify(o.op.requestBody || "") + [...names(o.op)].join(" ");
      o.text = o.text.toLowerCase();
      section.append(o.node);
      list.append(o.link);
    }
    const group = el("div", {}, el("h2", {}, tag.name), list);
    $("index").append(group);
    $("operations").append(section);
    mine.forEach((o) => Object.assign(o, { section, group }));
  }
  for (const [code, [status, text]] of [...codes].sort((a, b) => a[1][0].localeCompare(b[1][0]) || a[0].localeCompare(b[0]))) {
    $("codes").querySelector("tbody").append(el("tr", {}, el("td", {}, status), el("td", {}, el("code", {}, code)), el("td", {}, text)));
  }
  $("codes").hidden = false;
  $("search").addEventListener("input", () => search(all));
  open();
  addEventListener("hashchange", open);
}

// names collects the field names and error codes of an operation.
function names(op, out = new Set()) {
  const walk = (s, depth) => {
    s = inner(s);
    if (!s || depth > 4) return;
    for (const [name, p] of Object.entries(s.properties)) { out.add(name); walk(p, depth + 1); }
  };
  if (op.requestBody) walk(op.requestBody.content["application/json"].schema, 0);
  for (const [, r] of responses(op)) {
    const media = r.content && r.content["application/json"];
    if (!media) continue;
    walk(dataOf(media.schema), 0);
    Object.keys(media.examples || {}).forEach((c) => out.add(c));
  }
  return out;
}

function search(all) {
  const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const left = new Set();
  for (const o of all) {
    const hit = words.every((w) => o.text.includes(w));
    o.node.hidden = o.link.hidden = !hit;
    if (hit) { left.add(o.section); left.add(o.group); }
  }
  for (const o of all) { o.section.hidden = !left.has(o.section); o.group.hidden = !left.has(o.group); }
  $("state").textContent = left.size ? "" : "Nothing has all of these words. Try fewer.";
}

function open() {
  const at = location.hash.length > 1 && $(decodeURIComponent(location.hash.slice(1)));
  if (at && at.tagName === "ARTICLE") { at.firstChild.open = true; at.scrollIntoView(); }
}

fetch("/v1/openapi.json").then((r) => { if (!r.ok) throw new Error("status " + r.status); return r.json(); })
  .then((d) => { doc = d; $("state").textContent = ""; draw(); })
  .catch((e) => { $("state").textContent = "The document could not be loaded (" + e.message + "). Reload the page."; });
