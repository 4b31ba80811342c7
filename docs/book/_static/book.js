// The theme's buttons that unfold the navigation have an icon and no name.
for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
  toggle.setAttribute("aria-label", "Show or hide the pages of this section");
}

// The page of claims: a field that filters the rows, and headers that sort them.
const claims = [...document.querySelectorAll("table.claims")];
const bodies = claims.map((table) => table.tBodies[0]);

// Shows the rows that hold all of the words, hides papers without any, and returns the count.
function filter(wanted) {
  const words = wanted.toLowerCase().split(/\s+/);
  let shown = 0;
  for (const body of bodies) {
    const before = shown;
    for (const row of body.rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    body.closest("section").hidden = shown === before;
  }
  return shown;
}

// The number that a cell begins with: "+0.2", "[-0.1, +0.3]", "< .001", "5 seeds".
const number = (text) => parseFloat(text.replace(/^[[<\s]+/, ""));

function sort(body, column, ascending) {
  const text = (row) => row.cells[column].textContent.trim();
  const order = (a, b) => {
    const difference = number(text(a)) - number(text(b));
    const compared = Number.isNaN(difference) ? text(a).localeCompare(text(b)) : difference;
    return ascending ? compared : -compared;
  };
  const rows = [...body.rows];
  const empty = rows.filter((row) => text(row) === ""); // last, whichever way
  body.append(...rows.filter((row) => text(row) !== "").sort(order), ...empty);
}

if (claims.length) {
  const field = document.createElement("input");
  Object.assign(field, { type: "search", className: "form-control", placeholder: "Search the claims" });
  field.setAttribute("aria-label", "Search the claims");
  const count = document.createElement("p");
  count.setAttribute("role", "status");
  const all = bodies.reduce((sum, body) => sum + body.rows.length, 0);
  const show = () => {
    count.textContent = `${filter(field.value)} of ${all} claims`;
    field.parentElement.classList.toggle("searching", field.value !== "");
  };
  field.addEventListener("input", show);
  document.querySelector("main h1").after(field, count);
  show();
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
