// A provider of OpenID Connect on loopback, by the package oidc-provider.
//
// Its name is localhost: to browsers that is another site than 127.0.0.1, where gateways are.
//
// node oidc_provider.mjs PORT CLIENTS ACCOUNTS, the last two as JSON:
// [{"client_id": ..., "redirect_uris": [...]}] and {"ada": {"groups": [...], "name": ...}}.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const [port, clients, accounts] = process.argv.slice(2);
const known = JSON.parse(accounts);
const issuer = `http://localhost:${port}`;

const provider = new Provider(issuer, {
  clients: JSON.parse(clients),
  claims: { openid: ['sub'], profile: ['name'], email: ['email'], groups: ['groups'] },
  scopes: ['openid', 'profile', 'email', 'groups'],
  cookies: { keys: ['a key of tests'] },
  features: { devInteractions: { enabled: false }, rpInitiatedLogout: { enabled: true } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  findAccount: (_, id) => known[id] && { accountId: id, claims: () => ({ sub: id, ...known[id] }) },
  // Everybody lets every client know everything.
  loadExistingGrant: async (ctx) => {
    const { client, session } = ctx.oidc;
    const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
    grant.addOIDCScope('openid profile email groups');
    await grant.save();
    return grant;
  },
  renderError: (ctx, out) => {
    ctx.type = 'text';
    ctx.body = JSON.stringify(out);
  },
});

const page = (uid) => `<!doctype html><html lang="en"><title>Provider</title>
<form method="post" action="/interaction/${uid}">
<label>Account <input name="account"></label><button>Log in</button></form></html>`;

async function interact(request, response) {
  const uid = request.url.split('/')[2];
  if (request.method === 'GET') {
    await provider.interactionDetails(request, response);
    response.setHeader('content-type', 'text/html');
    response.end(page(uid));
    return;
  }
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const accountId = new URLSearchParams(Buffer.concat(chunks).toString()).get('account');
  const result = known[accountId]
    ? { login: { accountId } }
    : { error: 'access_denied', error_description: 'no such account' };
  await provider.interactionFinished(request, response, result);
}

const rest = provider.callback();
createServer((request, response) => {
  if (!request.url.startsWith('/interaction/')) {
    rest(request, response);
    return;
  }
  interact(request, response).catch((error) => {
    response.statusCode = 400;
    response.end(String(error));
  });
}).listen(Number(port), '127.0.0.1');
