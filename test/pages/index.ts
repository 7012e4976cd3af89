import { getStarted } from "./getStarted.ts";
import { guides } from "./guides.ts";
import { operate } from "./operate.ts";
import type { PageTest } from "./PageTest.ts";
import { readmes } from "./readmes.ts";
import { tutorials } from "./tutorials.ts";

/** The tests of all pages with commands. */
export const pageTests: readonly PageTest[] = [
  ...getStarted,
  ...tutorials,
  ...guides,
  ...operate,
  ...readmes,
];
