"use strict";
// Old versions of Node.js must be able to parse this file: it has only the syntax of ECMAScript 2015.

/**
 * Returns the error if this version of Node.js is too old for a program; undefined if it is not.
 * @param {string} program name of the program
 * @param {string} needed the field `engines.node` of package.json: `>=22.19`
 * @param {string} [version] the version of Node.js
 */
function nodeProblem(program, needed, version = process.versions.node) {
  const least = needed.replace(">=", "");
  const [major, minor] = least.split(".").map(Number);
  const [ownMajor, ownMinor] = version.split(".").map(Number);
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return undefined;
  return `${program} needs Node.js ${least} or newer, but this is Node.js ${version}. Install a newer version from https://nodejs.org.`;
}

/**
 * Runs the module of a program. Prints an error and exits with 1 if this version of Node.js is too old.
 * @param {string} program name of the program
 * @param {string} needed the field `engines.node` of package.json
 * @param {string} file path of the module
 */
function startProgram(program, needed, file) {
  const problem = nodeProblem(program, needed);
  if (problem !== undefined) {
    console.error(problem);
    process.exit(1);
  }
  // The file is separate because versions before Node.js 10 cannot parse `import()`.
  require("./importModule.cjs")(file);
}

module.exports = { nodeProblem, startProgram };
