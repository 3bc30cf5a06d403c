// The little script of the operator's page; everything can be read and done without it.
//
// data-live="1000"   an element with an id that is replaced every so many milliseconds by the same
//                    element of the page asked for again, for as long as that has the mark
// data-load="/…"     an element that takes what the page at that URL has in main [data-part]
// data-copy="id"     a button that copies the text of another element
//
// Nothing is ever made from text here: what comes is parsed as a document, in which no script runs,
// and its elements are moved over.
"use strict";

(() => {
  const LONGEST_WAIT_MS = 30_000;
  const LIMIT_MS = 12_000;
  const status = document.getElementById("live-status");

  const here = location.pathname + location.search;

  class LoggedOut extends Error {}

  async function fetched(url) {
    const answer = await fetch(url, {
      credentials: "same-origin",
      headers: { "X-Page-Poll": "1" },
      signal: AbortSignal.timeout(LIMIT_MS),
    });
    if (new URL(answer.url).pathname === "/operator/login") throw new LoggedOut();
    const isPage = (answer.headers.get("Content-Type") || "").startsWith("text/html");
    if (!isPage) throw new Error("no page");
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    return { page, isGood: answer.ok };
  }

  function say(words, isBehind) {
    if (status.textContent !== words) status.textContent = words;
    status.classList.toggle("is-behind", isBehind);
  }

  // --- what is live ---------------------------------------------------------------------------

  const live = () => [...document.querySelectorAll("[data-live][id]")];
  let timer = 0;
  let failures = 0;
  let isOver = false;

  function pauseMs() {
    const wanted = Math.min(...live().map((each) => Number(each.dataset.live) || 1000));
    return Math.min(Math.max(wanted, 250) * 2 ** failures, LONGEST_WAIT_MS);
  }

  function plan() {
    clearTimeout(timer);
    if (isOver || document.hidden || live().length === 0) return;
    timer = setTimeout(refresh, pauseMs());
  }

  async function refresh() {
    try {
      const { page, isGood } = await fetched(here);
      if (!isGood) throw new Error("not now");
      live().forEach((each) => renew(each, page.getElementById(each.id)));
      failures = 0;
      say(live().length === 0 ? "" : "This page follows what happens.", false);
    } catch (error) {
      if (error instanceof LoggedOut) {
        isOver = true;
        say("The session has ended: open the page again to log in.", true);
        return;
      }
      failures += 1;
      say("Not up to date: the gateway does not answer. It is asked again.", true);
    }
    plan();
  }

  function renew(old, fresh) {
    if (fresh === null || !fresh.hasAttribute("data-live")) old.removeAttribute("data-live");
    else old.dataset.live = fresh.dataset.live;
    if (fresh === null || fresh.innerHTML === old.dataset.shown || isMarked(old)) return;
    // Compared with what came before, not with what is there, in which details may be open.
    const source = fresh.innerHTML;
    const focused = placeOf(old);
    // By its id where it has one: what came new may have moved it.
    const keyOf = (details, index) => details.id || index;
    const all = [...old.querySelectorAll("details")];
    const open = new Map(all.map((each, index) => [keyOf(each, index), each.open]));
    const scrolled = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    old.replaceChildren(...document.adoptNode(fresh).childNodes);
    old.querySelectorAll("details").forEach((each, index) => {
      each.open = open.get(keyOf(each, index)) ?? each.open;
    });
    old.querySelectorAll(".scroll").forEach((each, index) => {
      each.scrollLeft = scrolled[index] ?? 0;
    });
    old.dataset.shown = source;
    offerCopies(old);
    if (focused !== null) focus(old, focused);
  }

  // Somebody is about to copy some of it: it is renewed after that.
  function isMarked(root) {
    const selection = getSelection();
    return selection !== null && !selection.isCollapsed && root.contains(selection.anchorNode);
  }

  const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex]";

  function placeOf(root) {
    const active = document.activeElement;
    if (active === null || !root.contains(active) || active === root) return null;
    const index = [...root.querySelectorAll(FOCUSABLE)].indexOf(active);
    return { id: active.id, href: active.getAttribute("href"), index };
  }

  function focus(root, place) {
    const all = [...root.querySelectorAll(FOCUSABLE)];
    const found =
      all.find((each) => place.id !== "" && each.id === place.id) ||
      all.find((each) => place.href !== null && each.getAttribute("href") === place.href) ||
      all[Math.min(place.index, all.length - 1)];
    if (found !== undefined) found.focus({ preventScroll: true });
  }

  // --- what is loaded later -------------------------------------------------------------------

  async function load(element) {
    element.setAttribute("aria-busy", "true");
    try {
      const { page } = await fetched(element.dataset.load);
      const part = page.querySelector("main [data-part]");
      if (part === null) throw new Error("no part");
      element.replaceChildren(...document.adoptNode(part).childNodes);
      offerCopies(element);
    } catch {
      const sentence = document.createElement("p");
      sentence.className = "fault";
      sentence.textContent = "This could not be loaded: the link opens it by itself.";
      element.prepend(sentence);
    }
    element.setAttribute("aria-busy", "false");
  }

  // --- what is copied -------------------------------------------------------------------------

  function offerCopies(root) {
    root.querySelectorAll("button[data-copy]").forEach((button) => {
      button.hidden = false;
    });
  }

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      say("Copied.", false);
    } catch {
      // Without TLS browsers have no clipboard for a page: then it is marked, for the keys to copy.
      getSelection().selectAllChildren(source);
      say("Marked: copy it by the keyboard.", false);
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (button !== null) copy(button);
  });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) clearTimeout(timer);
    else if (!isOver && live().length > 0) refresh();
  });
  live().forEach((each) => {
    each.dataset.shown = each.innerHTML;
  });
  offerCopies(document);
  document.querySelectorAll("[data-load]").forEach(load);
  plan();
})();
