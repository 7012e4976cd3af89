"use strict";
const { pathToFileURL } = require("node:url");

/**
 * Imports an ECMAScript module. An error of the module ends the process.
 * @param {string} file path of the module
 */
module.exports = (file) => import(pathToFileURL(file).href);
