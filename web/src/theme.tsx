// Light, dark or as the system has it.
import { createContext } from "preact";
import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
const KEY = "jouleprof-theme";

// Storage may be forbidden, such as from file:// in some browsers.
function stored(): Theme {
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
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // The choice holds for this visit.
    }
    setVersion((v) => v + 1);
  }, [theme]);
  useEffect(() => {
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => setVersion((v) => v + 1);
    const printing = () => setVersion((v) => v + 1);
    dark.addEventListener("change", changed);
    addEventListener("beforeprint", printing);
    addEventListener("afterprint", printing);
    return () => {
      dark.removeEventListener("change", changed);
      removeEventListener("beforeprint", printing);
      removeEventListener("afterprint", printing);
    };
  }, []);
  return [theme, setTheme, version];
}

export const colour = (name: string): string =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
