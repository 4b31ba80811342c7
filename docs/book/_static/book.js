// The theme's buttons that unfold the navigation have an icon and no name.
for (const toggle of document.querySelectorAll("summary:has(> .toctree-toggle)")) {
  toggle.setAttribute("aria-label", "Show or hide the pages of this section");
}
