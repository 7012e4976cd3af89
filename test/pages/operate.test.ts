/**
 * Slow: each line of a page starts a process. commands.test.ts quickly checks that the lists are complete.
 *
 * @module-tag long
 */
import { operate } from "./operate.ts";

for (const { declare } of operate) declare?.();
