/**
 * Slow: each line of a page starts a process. commands.test.ts quickly checks that the lists are complete.
 *
 * @module-tag long
 */
import { guides } from "./guides.ts";

for (const { declare } of guides) declare?.();
