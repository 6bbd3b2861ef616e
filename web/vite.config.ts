import { defineConfig } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

export default defineConfig({
  esbuild: { jsx: "automatic", jsxImportSource: "preact" },
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  build: { target: "es2020", modulePreload: false, chunkSizeWarningLimit: 200 },
});
