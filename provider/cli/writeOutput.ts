import { writeFile } from "node:fs/promises";
import { fileError } from "../engine/index.ts";

/** Writes a file that a flag names. @throws EngineError (`output`) if it cannot be written */
export const writeOutput = (file: string, text: string): Promise<void> =>
  writeFile(file, text).catch(fileError("output", "write", file));
