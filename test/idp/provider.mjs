// An independent OpenID Connect provider for one test: it signs with the algorithm
// given as its only argument, says on its first line where it listens, and ends
// when its standard input does.
import { createServer } from 'node:http';
import { generateKeyPair, exportJWK } from 'jose';
import Provider from 'oidc-provider';

const algorithm = process.argv[2];
const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
const key = { ...(await exportJWK(privateKey)), kid: `test-${algorithm}`, alg: algorithm, use: 'sig' };

const client = (id) => ({
  client_id: id,
  application_type: 'native',
  token_endpoint_auth_method: 'none',
  id_token_signed_response_alg: algorithm,
  redirect_uris: ['http://127.0.0.1/callback'],
  response_types: ['code'],
  grant_types: ['authorization_code'],
});

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [client('cotal-main'), client('other')],
    jwks: { keys: [key] },
    enabledJWA: { idTokenSigningAlgValues: [algorithm] },
    cookies: { keys: ['only for one test'] },
    pkce: { required: () => true },
    findAccount: (_ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  });
  server.on('request', provider.callback());
  console.log(JSON.stringify({ issuer }));
});

process.stdin.resume();
process.stdin.on('end', () => process.exit(0));
