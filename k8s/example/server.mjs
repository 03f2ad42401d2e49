// An application that takes webhooks and knows nothing of Hookonce: it logs what it handles.
import { createServer } from 'node:http';

const server = createServer((request, response) => {
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    console.log(`${request.method} ${request.url} ${Buffer.concat(chunks).length} bytes`);
    response.end('handled\n');
  });
});
server.listen(Number(process.env.PORT ?? 8080), () => console.log(`listening on ${server.address().port}`));
process.on('SIGTERM', () => server.close());
