#!/usr/bin/env node
const { startProgram } = require("@gatehouse-access/sdk/startProgram.cjs");
const { engines } = require("../package.json");

startProgram("gatehouse", engines.node, require.resolve("../dist/cli/start.js"));
