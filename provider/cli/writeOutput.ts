import { writeFile } from "node:fs/promises";
import { fileError } from "../engine/index.ts";

/**
 * Writes an output file. The path is the value of a flag.
 * @throws EngineError (`output`) if the file cannot be written
 */
export const writeOutput = (file: string, text: string): Promise<void> =>
  writeFile(file, text).catch(fileError("output", "write", file));
