// <docflow-importer src="https://docflow.example">: the importer of docflow in a page of yours.
// Give it `getToken(session)`, which asks your server for an upload token, and listen to its events.
"use strict";

const AGAIN_MS = 15_000;

customElements.define(
  "docflow-importer",
  class extends HTMLElement {
    #ask;
    #frame;
    #heard;

    connectedCallback() {
      // It may have been set before this script came.
      if (Object.hasOwn(this, "getToken")) {
        const ask = this.getToken;
        delete this.getToken;
        this.#ask = ask;
      }
      this.#open();
    }

    disconnectedCallback() {
      window.removeEventListener("message", this.#heard);
      this.#frame?.remove();
      this.#frame = this.#heard = undefined;
    }

    get getToken() {
      return this.#ask;
    }

    set getToken(ask) {
      this.#ask = ask;
      this.#open();
    }

    #say(kind, detail) {
      this.dispatchEvent(new CustomEvent(kind, { detail }));
    }

    async #token(session) {
      try {
        return await this.#ask(session);
      } catch (error) {
        this.#say("failed", { message: String(error?.message ?? error) });
        return undefined;
      }
    }

    async #open() {
      if (!this.isConnected || !this.#ask || this.#heard) return;
      const docflow = new URL(this.getAttribute("src"), document.baseURI);
      const frame = document.createElement("iframe");
      let asking = false;

      const heard = async (event) => {
        if (event.source !== frame.contentWindow || event.origin !== docflow.origin) return;
        const { type, ...detail } = event.data;
        if (type === "docflow:height") frame.style.height = `${detail.height}px`;
        else if (type !== "docflow:token-needed") this.#say(type.replace("docflow:", ""), detail);
        else if (!asking) {
          asking = true;
          const given = first ?? (await this.#token(session));
          first = undefined;
          asking = false;
          if (!given || !frame.isConnected) return;
          const upload = this.getAttribute("upload");
          frame.contentWindow.postMessage({ type: "docflow:token", token: given.token, upload }, docflow.origin);
        }
      };

      this.#heard = heard;
      let first = await this.#token();
      if (this.#heard !== heard) return;
      if (!first) {
        this.#heard = undefined;
        setTimeout(() => this.isConnected && !this.#heard && this.#open(), AGAIN_MS);
        return;
      }
      const { session } = first;
      window.addEventListener("message", heard);
      const address = new URL(`/embed/${encodeURIComponent(session)}`, docflow);
      const language = this.getAttribute("language");
      if (language) address.searchParams.set("language", language);
      frame.src = address;
      frame.title = this.getAttribute("label") ?? "Import";
      // The frame sees which site is around it, and no more.
      frame.referrerPolicy = "strict-origin";
      frame.style.cssText = "display: block; width: 100%; height: 24rem; border: 0";
      this.#frame = frame;
      this.append(frame);
    }
  },
);
