// The little script of the operator's page; everything can be read and done without it.
//
// data-live="1000"   an element with an id that is replaced every so many milliseconds by the same
//                    element of the page asked for again, for as long as that has the mark
// data-load="/…"     an element that takes what the page at that URL has in main [data-part], and
//                    takes it again when its data-load-when is another in the page asked for again
// data-copy="id"     a button that copies the text of another element
//
// A form that is sent by POST is sent once: its buttons are dead then, until the page is shown anew.
//
// Nothing is ever made from text here: what comes is parsed as a document, in which no script runs,
// and its elements are moved over.
"use strict";

(() => {
  const LONGEST_WAIT_MS = 5_000;
  const LIMIT_MS = 12_000;
  const NOTICE_MS = 10_000;
  const status = document.getElementById("live-status");
  const banner = document.getElementById("behind");
  const asOf = document.getElementById("as-of");

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

  function tell(element, words) {
    if (element.textContent !== words) element.textContent = words;
  }

  // What is shown is older than it looks: said on top, where everybody looks, until it is over.
  function warn(sentence) {
    tell(banner, sentence === "" ? "" : `${sentence} This page is as of ${asOf.textContent}.`);
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
      if (isGood) follow(page);
      else fail(sentenceOf(page));
    } catch (error) {
      if (error instanceof LoggedOut) {
        isOver = true;
        tell(status, "");
        warn("The session has ended: open the page again to log in.");
        return;
      }
      fail("The gateway does not answer; it is asked again.");
    }
    plan();
  }

  function follow(page) {
    const renewed = live().filter((each) => renew(each, page.getElementById(each.id)));
    if (renewed.length > 0) dropNotices();
    loadAnew(page);
    failures = 0;
    tell(asOf, page.getElementById("as-of").textContent);
    tell(status, live().length === 0 ? "" : "This page follows what happens.");
    warn("");
  }

  function fail(sentence) {
    failures += 1;
    tell(status, "");
    warn(sentence);
  }

  function sentenceOf(page) {
    const fault = page.querySelector("main .fault");
    return fault === null ? "The gateway can't show this page now." : fault.textContent;
  }

  // What was told of a deed is past once what it was about has gone on.
  let shownNotices = [...document.querySelectorAll(".notice")];

  function dropNotices() {
    if (performance.now() < NOTICE_MS) return;
    shownNotices.forEach((each) => each.remove());
    shownNotices = [];
  }

  // Answers whether there was anything new.
  function renew(old, fresh) {
    if (fresh === null || !fresh.hasAttribute("data-live")) old.removeAttribute("data-live");
    else old.dataset.live = fresh.dataset.live;
    if (fresh === null || fresh.innerHTML === old.dataset.shown || isMarked(old)) return false;
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
    return true;
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

  // The load that was begun last is the one that counts.
  const loads = new WeakMap();

  async function load(element) {
    const mine = Symbol("load");
    loads.set(element, mine);
    element.setAttribute("aria-busy", "true");
    try {
      const { page } = await fetched(element.dataset.load);
      const part = page.querySelector("main [data-part]");
      if (part === null) throw new Error("no part");
      if (loads.get(element) !== mine) return;
      element.replaceChildren(...document.adoptNode(part).childNodes);
      offerCopies(element);
    } catch {
      if (loads.get(element) !== mine) return;
      element.querySelector(":scope > .fault")?.remove();
      const sentence = document.createElement("p");
      sentence.className = "fault";
      sentence.textContent = "This could not be loaded: the link opens it by itself.";
      element.prepend(sentence);
    }
    element.setAttribute("aria-busy", "false");
  }

  function loadAnew(page) {
    document.querySelectorAll("[data-load-when]").forEach((element) => {
      const when = page.getElementById(element.id)?.dataset.loadWhen;
      if (when === undefined || when === element.dataset.loadWhen) return;
      element.dataset.loadWhen = when;
      load(element);
    });
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
      tell(status, "Copied.");
    } catch {
      // Without TLS browsers have no clipboard for a page: then it is marked, for the keys to copy.
      getSelection().selectAllChildren(source);
      tell(status, "Marked: copy it by the keyboard.");
    }
  }

  // --- what is sent once ----------------------------------------------------------------------

  // A second click would have the browser throw away the first answer, which may have a token.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.isSent) event.preventDefault();
    form.dataset.isSent = "yes";
    // Once its fields are gathered, of which the button that was clicked is one.
    setTimeout(() => form.querySelectorAll("button").forEach((each) => (each.disabled = true)));
  });
  // Also by the back button, which may bring the page as it was left.
  addEventListener("pageshow", () => {
    document.querySelectorAll('form[method="post"]').forEach((form) => {
      delete form.dataset.isSent;
      form.querySelectorAll("button").forEach((each) => (each.disabled = false));
    });
  });

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
