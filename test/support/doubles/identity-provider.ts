import { createServer } from 'node:http'
import { generateKeyPairSync } from 'node:crypto'
import { Provider } from 'oidc-provider'
import type { Test } from 'tap'
import { listen } from '#test/support/start/listen.ts'

type Person = { email: string; email_verified: boolean; groups?: readonly string[] }

/** A real OpenID provider on loopback; who signs in with a name is the person of that name. */
export async function startIdentityProvider(t: Test, people: Record<string, Person>) {
  const server = createServer()
  const issuer = await listen(t, server)
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const open = (redirectUri: string) => {
    const provider = new Provider(issuer, {
      clients: [
        {
          client_id: 'vault',
          client_secret: 'a secret of the vault',
          redirect_uris: [redirectUri],
        },
      ],
      jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), use: 'sig', alg: 'RS256' }] },
      ttl: { Interaction: 600, Session: 600, Grant: 600, AccessToken: 600, IdToken: 600 },
      cookies: { keys: ['a key for tests'] },
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      findAccount: (_, id) => ({
        accountId: id,
        claims: () => ({ sub: id, ...people[id] }),
      }),
    })
    const answer = provider.callback()
    server.on('request', (request, response) => void answer(request, response))
  }
  const env = {
    OIDC_ISSUER: issuer,
    OIDC_CLIENT_ID: 'vault',
    OIDC_CLIENT_SECRET: 'a secret of the vault',
    OIDC_NAME: 'Example',
  }
  return { issuer, open, env }
}
