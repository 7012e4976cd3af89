/**
 * Slow: each line of a page starts a process. commands.test.ts quickly checks that the lists are complete.
 *
 * @module-tag long
 */
import { tutorials } from "./tutorials.ts";

for (const { declare } of tutorials) declare?.();
