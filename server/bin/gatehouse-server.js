#!/usr/bin/env node
const { startProgram } = require("@gatehouse-access/sdk/startProgram.cjs");
const { engines } = require("../package.json");

startProgram("gatehouse-server", engines.node, require.resolve("../dist/start.js"));
