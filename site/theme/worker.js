// SPDX-License-Identifier: Apache-2.0
// Browsers start no Worker in a page that was opened from a folder. There, the worker of the search
// runs in a hidden frame of the page.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      const base = new URL(address, location.href);
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      const load = (one) =>
        new Promise((done, failed) => {
          const script = inside.document.createElement("script");
          script.src = new URL(one, base);
          script.onload = done;
          script.onerror = () => failed(new Error(`cannot load ${one}`));
          inside.document.body.append(script);
        });
      inside.IFrameWorker = window.IFrameWorker;
      inside.importScripts = (...addresses) =>
        addresses.reduce((before, one) => before.then(() => load(one)), Promise.resolve());
      inside.postMessage = (data) =>
        this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(base);
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      this.ready.then(() => inside.dispatchEvent(new inside.MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;
}
