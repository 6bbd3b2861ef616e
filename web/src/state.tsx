// What a reader chose, in the page's address: a link, a reload or a bookmark shows the same again.
import { createContext, options } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";

const read = (key: string): string | null => new URLSearchParams(location.hash.slice(1)).get(key);

function write(key: string, value: string | null): void {
  const all = new URLSearchParams(location.hash.slice(1));
  if (value === null || value === "") all.delete(key);
  else all.set(key, value);
  const text = all.toString();
  try {
    history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
  } catch {
    // A browser may forbid it, or limit how often: the choice holds for this visit.
  }
}

export interface Coding<T> {
  text: (value: T) => string | null; // null: as at first, nothing in the address
  value: (text: string) => T | undefined; // undefined: no such value
}

// A state that the address has under `key`. The back button and an edited address change it, too.
export function useUrl<T>(key: string, first: T, coding: Coding<T>): [T, (value: T) => void] {
  const now = (): T => {
    const text = read(key);
    const value = text === null ? undefined : coding.value(text);
    return value === undefined ? first : value;
  };
  const [value, setValue] = useState<T>(now);
  const written = useRef(read(key));
  useEffect(() => {
    const changed = () => {
      if (read(key) === written.current) return;
      written.current = read(key);
      setValue(now);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  const set = useCallback((next: T) => {
    write(key, coding.text(next));
    written.current = read(key);
    setValue(() => next);
    dispatchEvent(new Event("hashchange")); // others may show the same state
  }, []);
  return [value, set];
}

// One of some words; `first` is not written.
export const oneOf = <T extends string>(first: T, words?: readonly T[]): Coding<T> => ({
  text: (value) => (value === first ? null : value),
  value: (text) => (!words || words.includes(text as T) ? (text as T) : undefined),
});

export const flag = (first: boolean): Coding<boolean> => ({
  text: (value) => (value === first ? null : value ? "1" : "0"),
  value: (text) => text === "1",
});

// "12.5_17", in seconds. The first second may be negative: before the command began.
export const interval: Coding<{ begin: number; end: number } | null> = {
  text: (value) => value && `${Number(value.begin.toFixed(6))}_${Number(value.end.toFixed(6))}`,
  value: (text) => {
    const [begin, end] = text.split("_").map(Number);
    return Number.isFinite(begin) && end > begin ? { begin, end } : undefined;
  },
};

// What two panels share at each move of the pointer: only those that use it are drawn again.
export class Shared<T> {
  private listeners = new Set<() => void>();
  constructor(public value: T) {}

  set = (value: T) => {
    if (value === this.value) return;
    this.value = value;
    this.listeners.forEach((l) => l());
  };

  // What `of` makes of the value; drawn again where that changes.
  use<U>(of: (value: T) => U): U {
    const [, again] = useState(of(this.value));
    useEffect(() => {
      const changed = () => again(() => of(this.value));
      this.listeners.add(changed);
      return () => void this.listeners.delete(changed);
    });
    return of(this.value);
  }
}

// Light, dark or as the system has it.
export type Theme = "system" | "light" | "dark";
const KEY = "jouleprof-theme";

// Storage may be forbidden, such as from file:// in some browsers.
function stored(): Theme {
  const linked = read("theme");
  if (linked === "light" || linked === "dark") return linked;
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : "system";
  } catch {
    return "system";
  }
}

export function applyTheme(theme: Theme): void {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// A number that changes whenever colours do, for what is drawn on a canvas.
export const ThemeVersion = createContext(0);

export function useTheme(): [Theme, (theme: Theme) => void, number] {
  const [theme, setTheme] = useState<Theme>(stored);
  const [version, setVersion] = useState(0);
  useEffect(() => {
    applyTheme(theme);
    write("theme", theme === "system" ? null : theme);
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The choice holds for this visit.
    }
    setVersion((v) => v + 1);
  }, [theme]);
  const chosen = useRef(theme);
  chosen.current = theme;
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setVersion((v) => v + 1);
    // Paper is white. Canvases are drawn again before the browser goes on to print.
    const drawn = (as: Theme) => {
      const usual = options.debounceRendering;
      applyTheme(as);
      options.debounceRendering = (draw) => draw();
      changed();
      options.debounceRendering = usual;
    };
    const before = () => drawn("light");
    const after = () => drawn(chosen.current);
    dark.addEventListener("change", changed);
    addEventListener("beforeprint", before);
    addEventListener("afterprint", after);
    return () => {
      dark.removeEventListener("change", changed);
      removeEventListener("beforeprint", before);
      removeEventListener("afterprint", after);
    };
  }, []);
  return [theme, setTheme, version];
}

export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
