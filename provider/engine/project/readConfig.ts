import { PassphraseError, StackSelectionError } from "../errors.ts";
import { openCrypter, readPassphrase } from "../state/crypter.ts";
import type { FileBackend } from "../state/fileBackend.ts";
import type { Project } from "./project.ts";
import { type Decrypter, readStackFile, resolveConfig } from "./stackConfig.ts";

/**
 * The configuration of a stack in a file backend, as plain text by `namespace:key`. Nothing is written: neither a stack
 * nor a salt is made. Throws StackSelectionError where the stack has neither a state nor a file, PassphraseError,
 * ProjectError, BackendError, UnsupportedError.
 */
export async function readConfig(
  project: Project,
  backend: FileBackend,
  env: NodeJS.ProcessEnv,
): Promise<ReadonlyMap<string, string>> {
  const [file, state] = await Promise.all([readStackFile(project, backend.stack), backend.read()]);
  if (!file.exists && !state) {
    throw new StackSelectionError(
      `There is no stack ${backend.stack} of the project ${project.name}: neither ${file.path} nor a state of it.`,
    );
  }
  const salt = file.encryptionSalt ?? state?.salt;
  const decrypter = salt === undefined ? unsalted : await openCrypter(await readPassphrase(env), salt);
  const { values } = resolveConfig(project, file, decrypter);
  return new Map([...values].map(([key, { text }]) => [key, text]));
}

const unsalted: Decrypter = {
  decrypt() {
    throw new PassphraseError("A secret cannot be decrypted: the stack has no encryption salt.");
  },
};
