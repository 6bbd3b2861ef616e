import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

// `--mode results` builds the page of what is not a run: each page has its own parts only.
export default defineConfig(({ mode }) => ({
  define: { IS_RUN: JSON.stringify(mode !== "results") },
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: {
    target: "es2020", modulePreload: false, chunkSizeWarningLimit: 200, emptyOutDir: mode !== "results",
    outDir: mode === "results" ? "dist/results" : "dist",
  },
}));
