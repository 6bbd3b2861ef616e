// A canvas that is as sharp as the screen, and follows the width of what holds it.
import { useEffect, useState } from "preact/hooks";
import type { RefObject } from "preact";

export function useWidth(ref: RefObject<HTMLElement>): number {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const measure = () => setWidth(Math.floor(element.clientWidth));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return width;
}

// How much larger than on an ordinary screen the page's text is: canvases follow it.
export function textScale(): number {
  return Math.max(1, parseFloat(getComputedStyle(document.documentElement).fontSize) / 15.5 || 1);
}

export function prepare(canvas: HTMLCanvasElement, width: number, height: number) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// As much of a text as has room, with dots where it is cut; nothing where there is none.
export function cut(context: CanvasRenderingContext2D, text: string, room: number): string {
  if (room < 14) return "";
  // A name of ten thousand characters is measured no further than it can show.
  const most = text.length > 400 ? text.slice(0, 400) : text;
  if (most === text && context.measureText(text).width <= room) return text;
  let low = 0;
  let high = most.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${most.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${most.slice(0, low)}…` : "";
}

const hatches = new Map<number, HTMLCanvasElement>();

// Diagonal lines over a fill: faint for an estimate, strong for a figure that is not resolvable.
export function hatch(context: CanvasRenderingContext2D, strength: number): CanvasPattern {
  let hatched = hatches.get(strength);
  if (!hatched) {
    hatched = document.createElement("canvas");
    hatched.width = hatched.height = 8;
    const lines = hatched.getContext("2d")!;
    hatches.set(strength, hatched);
    lines.strokeStyle = `rgba(0, 0, 0, ${strength})`;
    lines.lineWidth = 1.4;
    lines.beginPath();
    for (const x of [-8, 0, 8]) {
      lines.moveTo(x - 1, 9);
      lines.lineTo(x + 9, -1);
    }
    lines.stroke();
  }
  return context.createPattern(hatched, "repeat")!;
}

// Cividis, which looks the same to the colour-blind: `part` from 0 to 1.
const CIVIDIS = [
  [0, 34, 78], [30, 58, 111], [66, 79, 109], [95, 101, 112], [124, 123, 120], [155, 147, 116],
  [188, 173, 106], [222, 200, 82], [254, 232, 56],
];
export function cividis(part: number): string {
  const at = Math.min(Math.max(part, 0), 1) * (CIVIDIS.length - 1);
  const i = Math.min(Math.floor(at), CIVIDIS.length - 2);
  const mix = CIVIDIS[i].map((c, k) => Math.round(c + (CIVIDIS[i + 1][k] - c) * (at - i)));
  return `rgb(${mix.join(", ")})`;
}

// Black or white, whichever is easier to read on a colour.
export function inkOn(fill: string): string {
  const hex = /^#(..)(..)(..)$/.exec(fill);
  const rgb = hex
    ? hex.slice(1).map((c) => parseInt(c, 16))
    : (fill.match(/\d+/g) ?? ["255", "255", "255"]).map(Number);
  const [r, g, b] = rgb.map((c) => (c / 255) ** 2.2);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.22 ? "#101418" : "#ffffff";
}
