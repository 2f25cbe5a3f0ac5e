// Marks of what was viewed, and comments on lines that go along with Revise. Nothing here decides.
"use strict";
(() => {
  const form = document.getElementById("decide");
  const files = [...document.querySelectorAll(".sk-file[data-mark]")];
  const area = document.getElementById("reason");
  const who = area?.dataset.draft || document.querySelector("[data-viewer]")?.dataset.viewer || "";

  // -- viewed: kept in this browser, by the file's name and content
  const PLACE = `viewed:${who}`, MOST = 5000;
  const read = (store, key, otherwise) => {
    try { return JSON.parse(store.getItem(key)) ?? otherwise; } catch { return otherwise; }
  };
  const kept = read(localStorage, PLACE, []);
  const viewed = new Set(Array.isArray(kept) ? kept : []);
  const count = document.querySelector(".sk-viewed-count");
  const tell = () => {
    const many = files.filter((file) => viewed.has(file.dataset.mark)).length;
    if (count) count.textContent = many ? `${many} of ${files.length} viewed` : "";
  };
  const show = (file) => {
    const isSeen = viewed.has(file.dataset.mark);
    file.querySelector(".sk-viewed input").checked = isSeen;
    document.querySelector(`.sk-tree [data-to="${file.dataset.file}"]`)?.classList.toggle("sk-seen", isSeen);
    if (isSeen) file.open = false;
  };
  if (who) {
    files.forEach((file) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      label.className = "sk-viewed";
      box.type = "checkbox";
      label.append(box, "Viewed");
      file.querySelector(".sk-of-file").append(label);
      const mark = () => {
        if (box.checked) viewed.add(file.dataset.mark);
        else viewed.delete(file.dataset.mark);
        localStorage.setItem(PLACE, JSON.stringify([...viewed].slice(-MOST)));
        show(file);
        tell();
      };
      box.addEventListener("change", mark);
      show(file);
    });
    tell();
  }

  // -- which attempt was read last, kept in this browser: what is new since then stands at the top
  const here = document.querySelector("[data-change]");
  if (who && here) {
    const READ = `read:${who}`, CHANGES = 500, { change } = here.dataset, number = Number(here.dataset.attempt);
    const known = read(localStorage, READ, []);
    const others = (Array.isArray(known) ? known : []).filter((each) => Array.isArray(each) && each[0] !== change);
    const [, last = 0, before = 0] = (Array.isArray(known) && known.find((each) => each?.[0] === change)) || [];
    const since = number > last ? last : before;
    if (number > last) localStorage.setItem(READ, JSON.stringify([...others, [change, number, last]].slice(-CHANGES)));
    if (since < number) document.querySelector(`[data-since="${Number(since)}"]`)?.append(" (which you read)");
  }

  // a line or a file that is gone to is not folded
  const unfold = () => {
    const at = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    const file = at && at.closest(".sk-file");
    if (!file || file.open) return;
    file.open = true;
    at.scrollIntoView();
  };
  addEventListener("hashchange", unfold);
  unfold();

  // v goes to the mark of the file that has the focus, or of the first that is not viewed
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key !== "v" || event.target.closest("input, textarea, select")) return;
    const here = document.activeElement.closest(".sk-file");
    const file = here || files.find((each) => !viewed.has(each.dataset.mark));
    const box = file && file.querySelector(".sk-viewed input");
    if (!box) return;
    file.open = true;
    box.focus();
    event.preventDefault();
  });

  // -- comments: kept in this tab until they are sent, as drafts are
  if (!form || !document.querySelector('[name="verdict"][value="revise"]')) return;
  const DRAFT = `draft:${who}:${form.action}:comments`;
  const comments = read(sessionStorage, DRAFT, []).filter((each) => each && each.text);
  const holder = document.getElementById("comments");
  const word = document.querySelector("[data-comments]");
  const save = () => {
    sessionStorage.setItem(DRAFT, JSON.stringify(comments));
    holder.replaceChildren(...comments.map((each) => {
      const input = document.createElement("input");
      input.type = "hidden";
      input.name = "comment";
      input.value = `${each.where}: ${each.text}`;
      return input;
    }));
    word.textContent = comments.length ? ` with ${comments.length} comment${comments.length > 1 ? "s" : ""}` : "";
  };
  const button = (text, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "sk-btn sk-small";
    made.textContent = text;
    made.addEventListener("click", act);
    return made;
  };
  const under = (row) => {
    const made = document.createElement("tr");
    const cell = document.createElement("td");
    made.className = "sk-comment";
    cell.colSpan = 4;
    made.append(cell);
    row.after(made);
    return cell;
  };
  const shown = (each) => {
    const row = document.getElementById(each.row);
    if (!row || row.closest(".sk-file")?.dataset.path !== each.path) return;
    const cell = under(row), text = document.createElement("p");
    text.textContent = each.text;
    cell.append(text, button("Take back", () => {
      comments.splice(comments.indexOf(each), 1);
      cell.parentNode.remove();
      save();
    }));
  };
  const ask = (link) => {
    const row = link.closest("tr"), file = row.closest(".sk-file");
    if (row.nextElementSibling?.querySelector("textarea")) return;
    const cell = under(row), text = document.createElement("textarea"), line = link.textContent;
    const gone = row.classList.contains("sk-del") ? " (as it was)" : "";
    const where = `${file.dataset.path}, line ${line}${gone}`;
    text.setAttribute("aria-label", `Comment on ${where}`);
    text.maxLength = 3500;
    text.placeholder = "What is to be different here";
    const close = () => { cell.parentNode.remove(); link.focus(); };
    const add = () => {
      const said = text.value.trim();
      close();
      if (!said) return;
      const each = { row: row.id, path: file.dataset.path, where, text: said };
      comments.push(each);
      shown(each);
      save();
    };
    text.addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
    cell.append(text, button("Add to the revision", add), button("Cancel", close));
    text.focus();
  };
  document.querySelector(".sk-files")?.addEventListener("click", (event) => {
    const link = event.target.closest(".sk-no a");
    if (!link) return;
    event.preventDefault();
    ask(link);
  });
  comments.forEach(shown);
  save();
})();
