// Lets the code of a dynamic provider load this package if the package is not installed in the project. The code
// requires the package from the program's directory. In a workspace, this directory does not contain the package if
// only a component library depends on it.
import { createRequire, registerHooks } from "node:module";
import { pathToFileURL } from "node:url";
import { isMainThread } from "node:worker_threads";

const OWN = "@gatehouse-access/provider";

if (isMainThread) {
  const own = createRequire(import.meta.url);
  registerHooks({
    resolve(specifier, context, next) {
      try {
        return next(specifier, context);
      } catch (error) {
        if (specifier !== OWN && !specifier.startsWith(`${OWN}/`)) throw error;
        return { url: pathToFileURL(own.resolve(specifier)).href, shortCircuit: true };
      }
    },
  });
}
