// The theme's buttons that unfold the navigation have an icon and no name.
for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
  toggle.setAttribute("aria-label", "Show or hide the pages of this section");
}

// The page of claims: a field that filters the rows, and headers that sort them.
const claims = [...document.querySelectorAll("table.claims")];
const bodies = claims.map((table) => table.tBodies[0]);

function filter(wanted) {
  for (const row of bodies.flatMap((body) => [...body.rows])) {
    row.hidden = !row.textContent.toLowerCase().includes(wanted.toLowerCase());
  }
}

function sort(body, column, ascending) {
  const text = (row) => row.cells[column].textContent.trim();
  const order = (a, b) => {
    const difference = parseFloat(text(a)) - parseFloat(text(b));
    return Number.isNaN(difference) ? text(a).localeCompare(text(b)) : difference;
  };
  body.append(...[...body.rows].sort((a, b) => (ascending ? order(a, b) : order(b, a))));
}

if (claims.length) {
  const field = document.createElement("input");
  Object.assign(field, { type: "search", className: "form-control", placeholder: "Search the claims" });
  field.setAttribute("aria-label", "Search the claims");
  field.addEventListener("input", () => filter(field.value));
  document.querySelector("main h1").after(field);
}
for (const [i, table] of claims.entries()) {
  for (const [column, head] of [...table.tHead.rows[0].cells].entries()) {
    const button = document.createElement("button");
    button.className = "sort";
    button.append(...head.childNodes);
    button.addEventListener("click", () => {
      const ascending = head.getAttribute("aria-sort") !== "ascending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
      sort(bodies[i], column, ascending);
    });
    head.append(button);
  }
}
