// The description of the API, as text.

const at = (id) => document.getElementById(id);

function made(name, words, className) {
  const element = document.createElement(name);
  if (words !== undefined) element.textContent = words;
  if (className) element.className = className;
  return element;
}

function table(caption, rows) {
  const found = made("table");
  found.append(made("caption", caption));
  for (const [name, ...cells] of rows) {
    const row = made("tr");
    const head = made("th", name);
    head.scope = "row";
    row.append(head, ...cells.map((cell) => made("td", cell)));
    found.append(row);
  }
  return found;
}

const kind = (schema) =>
  schema.enum?.join(", ") ?? schema.const ?? schema.anyOf?.map(kind).join(" or ") ?? schema.type ?? "";

function section(path, method, operation) {
  const found = made("section", undefined, "operation");
  found.append(made("h2", `${method.toUpperCase()} ${path}`), made("p", operation.summary));
  for (const paragraph of (operation.description ?? "").split("\n\n")) found.append(made("p", paragraph));
  const parameters = operation.parameters ?? [];
  if (parameters.length > 0) {
    found.append(table("Parameters", parameters.map((one) => [one.name, one.in, kind(one.schema), one.description ?? ""])));
  }
  const body = operation.requestBody?.content["application/json"];
  if (body) {
    const required = body.schema.required ?? [];
    const fields = Object.entries(body.schema.properties);
    found.append(table("Body", fields.map(([name, one]) => [name, kind(one), required.includes(name) ? "required" : ""])));
    found.append(made("pre", JSON.stringify(body.example, null, 2)));
  }
  found.append(table("Answers", Object.entries(operation.responses).map(([status, one]) => [status, one.description])));
  return found;
}

const answer = await fetch("/openapi.json", { credentials: "same-origin" });
if (answer.status === 401) location.assign("/login");
const api = await answer.json();
at("description").textContent = api.info.description;
for (const [path, methods] of Object.entries(api.paths)) {
  for (const [method, operation] of Object.entries(methods)) at("operations").append(section(path, method, operation));
}
