// A link to what is shown, and any panel of the page as a picture.
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { copyText } from "./table";

const NAMESPACE = "http://www.w3.org/2000/svg";

// A panel without what cannot be used in a picture. Canvases become images.
function stilled(panel: HTMLElement): HTMLElement {
  const copy = panel.cloneNode(true) as HTMLElement;
  const canvases = [...copy.querySelectorAll("canvas")];
  panel.querySelectorAll("canvas").forEach((canvas, i) => {
    const image = document.createElement("img");
    image.src = canvas.toDataURL("image/png");
    image.style.cssText = `display:block;width:${canvas.style.width};height:${canvas.style.height}`;
    canvases[i].replaceWith(image);
  });
  copy.querySelectorAll(".controls, .share, .trail, .cursor, .tip, select, input").forEach((e) => e.remove());
  return copy;
}

// The panel as an SVG document: its own HTML with the page's style sheet, so that it needs no file.
export function panelSvg(panel: HTMLElement): { svg: string; width: number; height: number } {
  const box = panel.getBoundingClientRect();
  const controls = [...panel.querySelectorAll<HTMLElement>(".controls, .trail")].reduce((s, e) => s + e.offsetHeight, 0);
  const width = Math.ceil(box.width) + 32;
  const height = Math.ceil(box.height - controls) + 48;
  const root = document.createElement("div");
  root.setAttribute("xmlns", "http://www.w3.org/1999/xhtml");
  const holder = document.createElement("div");
  holder.append(stilled(panel));
  const style = document.createElement("style");
  style.textContent = [...document.querySelectorAll("style")].map((s) => s.textContent).join("\n");
  const computed = getComputedStyle(document.documentElement);
  // A picture has the colours that the reader sees, whatever the theme of who opens it.
  const names = ["paper", "panel", "ink", "soft", "line", "strong", "accent", "alert", "alert-paper", "outside", "selected", "gpu", "cpu", "gauge"];
  holder.style.cssText = `${names.map((n) => `--${n}:${computed.getPropertyValue(`--${n}`)}`).join(";")};` +
    `background:var(--paper);color:var(--ink);font:${computed.fontSize}/1.5 system-ui,sans-serif;padding:0 16px 16px;font-variant-numeric:tabular-nums`;
  root.append(style, holder);
  const svg = document.createElementNS(NAMESPACE, "svg");
  svg.setAttribute("width", String(width));
  svg.setAttribute("height", String(height));
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.style.fontSize = computed.fontSize;
  const frame = document.createElementNS(NAMESPACE, "foreignObject");
  frame.setAttribute("width", "100%");
  frame.setAttribute("height", "100%");
  frame.append(root);
  svg.append(frame);
  return { svg: new XMLSerializer().serializeToString(svg), width, height };
}

export async function panelPng(panel: HTMLElement): Promise<Blob> {
  const { svg, width, height } = panelSvg(panel);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * width;
  canvas.height = 2 * height;
  const context = canvas.getContext("2d")!;
  context.scale(2, 2);
  context.drawImage(image, 0, 0, width, height);
  return new Promise((made, failed) => canvas.toBlob((blob) => (blob ? made(blob) : failed(new Error("no picture"))), "image/png"));
}

function save(blob: Blob, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A heading with buttons that copy its section; where the clipboard takes no pictures, a file is saved.
// `more`: what stands in the same line; `isHidden`: the name is for those who hear the page.
export function Heading({ id, children, more, isHidden }: {
  id: string; children: ComponentChildren; more?: ComponentChildren; isHidden?: boolean;
}) {
  const [said, setSaid] = useState("");
  const button = useRef<HTMLSpanElement>(null);
  const panel = () => button.current!.closest("section")!;
  const png = async () => {
    try {
      const blob = await panelPng(panel());
      try {
        await navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]);
        setSaid("PNG copied");
      } catch {
        save(blob, `jouleprof-${id}.png`);
        setSaid("PNG saved");
      }
    } catch {
      setSaid("the browser did not allow it");
    }
  };
  const svg = async () => {
    const { svg: text } = panelSvg(panel());
    if (await copyText(text)) setSaid("SVG copied");
    else {
      save(new Blob([text], { type: "image/svg+xml" }), `jouleprof-${id}.svg`);
      setSaid("SVG saved");
    }
  };
  return (
    <div class="heading">
      <h2 id={id} class={isHidden ? "hidden" : undefined}>{children}</h2>
      {more}
      <span class="share" ref={button}>
        <span class="soft" role="status">{said}</span>
        <button type="button" aria-label={`Copy ${id} as SVG`} onClick={svg}>SVG</button>
        <button type="button" aria-label={`Copy ${id} as PNG`} onClick={png}>PNG</button>
      </span>
    </div>
  );
}

export function CopyLink() {
  const [said, setSaid] = useState("");
  return (
    <>
      <span class="soft" role="status">{said}</span>{" "}
      <button type="button" title="with selection, zoom, tab, filter and colours"
        onClick={async () => setSaid((await copyText(location.href)) ? "link copied" : "the browser did not allow it")}>
        Copy link
      </button>
    </>
  );
}
