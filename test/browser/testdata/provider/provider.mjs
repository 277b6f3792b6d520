// An identity provider that we did not write: oidc-provider from npm, with accounts of its own making.
//
// node provider.mjs NODE_MODULES SETTINGS, where SETTINGS is JSON: algorithm, clientId, clientSecret, redirectUri,
// emailInToken, which puts the e-mail address into the ID token, and resource, the audience of access tokens, which are JWTs
// then. It prints its issuer on a line when it is ready,
// and ends when its standard input does.
import { createServer } from 'node:http';
import { createPrivateKey, generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, settings] = process.argv.slice(2);
const { algorithm, clientId, clientSecret, redirectUri, emailInToken, resource } = JSON.parse(settings);
const { Provider } = await import(pathToFileURL(join(modules, 'oidc-provider', 'lib', 'index.js')));

// By way of PEM, because Node.js 20 can hang for good in the export of a key that it has just made: when memory is collected meanwhile,
// the end of the key's making waits for a lock that the export holds.
const encodings = { publicKeyEncoding: { type: 'spki', format: 'pem' }, privateKeyEncoding: { type: 'pkcs8', format: 'pem' } };
const { privateKey } = algorithm === 'ES256'
  ? generateKeyPairSync('ec', { namedCurve: 'P-256', ...encodings })
  : generateKeyPairSync('rsa', { modulusLength: 2048, ...encodings });
const key = { ...createPrivateKey(privateKey).export({ format: 'jwk' }), alg: algorithm, use: 'sig', kid: 'only' };

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'client_secret_basic',
      id_token_signed_response_alg: algorithm,
    }],
    jwks: { keys: [key] },
    pkce: { required: () => true },
    conformIdTokenClaims: !emailInToken,
    claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
    findAccount: async (_, id) => ({
      accountId: id,
      claims: async () => ({ sub: id, email: `${id}@example.com`, email_verified: !id.startsWith('unverified'), name: `${id} of npm` }),
    }),
    features: {
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: Boolean(resource),
        defaultResource: () => resource,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({ scope: 'openid', audience: resource, accessTokenFormat: 'jwt', jwt: { sign: { alg: algorithm } } }),
      },
    },
    cookies: { keys: ['made up'] },
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
process.stdin.on('end', () => process.exit()).resume();
