// What a kernel does, by its name; and a short form of its name.

export type Kind =
  | "gemm"
  | "attention"
  | "normalisation"
  | "elementwise"
  | "reduction"
  | "copy"
  | "collective"
  | "other";

// The first that matches decides.
const KINDS: [Kind, RegExp][] = [
  ["collective", /nccl|allreduce|all_reduce|allgather|reduce_?scatter|sendrecv|nvshmem/i],
  ["copy", /^(memcpy|memset|copy)|catarray|transpose|copy_kernel|direct_copy|index(select|_put|fill)|gather|scatter/i],
  ["attention", /flash|fmha|attention|attn|sdpa/i],
  ["normalisation", /norm(?!al_)|layer_?norm|batch_?norm|rms/i],
  ["gemm", /gemm|gemv|nvjet|cutlass|xmma|conv|matmul|winograd|mma_|linear|splitk|cublas|dot_/i],
  ["reduction", /softmax|reduce|reduction|sum_|argmax|topk|scan|sort|multi_tensor_apply.*norm/i],
  ["elementwise", /elementwise|pointwise|triton_poi|fused|adam|sgd|multi_tensor|foreach|gelu|relu|dropout|silu|sigmoid|tanh|add|mul|fill|cast|where/i],
];

export function kindOf(name: string): Kind {
  for (const [kind, pattern] of KINDS) if (pattern.test(name)) return kind;
  return "other";
}

// Any two differ by at least 15 (CIE 1976) also to people with deuteranopia or protanopia: test/palette.test.ts.
export const KIND_COLOURS: Record<Kind, string> = {
  gemm: "#468cda",
  attention: "#cd7d2f",
  normalisation: "#3b936b",
  elementwise: "#6dbafa",
  reduction: "#fab834",
  copy: "#d3c969",
  collective: "#e7b3df",
  other: "#b4b4a7",
};

export const IDLE_COLOUR = "#8e9aa8";

// Of what has no kind: devices, windows, phases. Beyond the eighth they begin again.
export const SERIES_COLOURS = Object.values(KIND_COLOURS);

// Without the return type, namespaces and parameters: what a reader knows a kernel by.
export function shortName(name: string): string {
  let text = name.replace(/^(void|static|inline|__global__)\s+/, "");
  let depth = 0;
  for (let i = 0; i < text.length; ++i) {
    if (text[i] === "<") ++depth;
    else if (text[i] === ">") depth = Math.max(0, depth - 1);
    else if (text[i] === "(" && depth === 0 && i > 0 && !text.startsWith("(anonymous", i)) {
      text = text.slice(0, i);
      break;
    }
  }
  return text
    .replace(/\(anonymous namespace\)::/g, "")
    .replace(/\b(at|native|cuda|cutlass|c10|std|pytorch_flash|detail|internal)::/g, "");
}
