import type { Configuration } from 'openid-client'
import type { OidcSettings } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'

/** What a sign-in under way has to be answered with. */
export type LoginState = {
  state: string
  nonce: string
  verifier: string
  /** The sign-in of an application that goes on afterwards; missing: the console's. */
  application?: string
}

const timeoutSeconds = 10

/** An OpenID provider, found by discovery at its first use. */
export class IdentityProvider {
  readonly #settings: OidcSettings
  readonly #redirectUri: string
  #configuration: Promise<Configuration> | undefined

  constructor(settings: OidcSettings, redirectUri: string) {
    this.#settings = settings
    this.#redirectUri = redirectUri
  }

  /** Where a person is sent, and what the answer is checked by: state, nonce and PKCE. */
  async begin(): Promise<LoginState & { url: string }> {
    const oidc = await import('openid-client')
    const configuration = await this.#open()
    const verifier = oidc.randomPKCECodeVerifier()
    const [state, nonce] = [oidc.randomState(), oidc.randomNonce()]
    const url = oidc.buildAuthorizationUrl(configuration, {
      redirect_uri: this.#redirectUri,
      scope: 'openid email',
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
    })
    return { url: url.href, state, nonce, verifier }
  }

  /**
   * The email of the person that the provider has sent back, in lower case.
   *
   * @param query of the request
   * @throws Refusal `forbidden` when the answer is not one to this state, or its email is not verified.
   */
  async finish(query: string, { state, nonce, verifier }: LoginState): Promise<string> {
    const oidc = await import('openid-client')
    const configuration = await this.#open()
    const url = new URL(this.#redirectUri)
    url.search = query
    const tokens = await oidc
      .authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
      .catch((error: unknown) => {
        throw new Refusal('forbidden', 'The sign-in was not confirmed', 'Sign in again', error)
      })
    const { sub, ...inToken } = tokens.claims()!
    const claims =
      typeof inToken.email === 'string'
        ? inToken
        : await oidc.fetchUserInfo(configuration, tokens.access_token, sub)
    if (typeof claims.email === 'string' && claims.email_verified === true)
      return claims.email.toLowerCase()
    throw new Refusal('forbidden', 'The provider has not verified an email of yours')
  }

  async #open(): Promise<Configuration> {
    const { discovery, allowInsecureRequests } = await import('openid-client')
    const { issuer, clientId, clientSecret } = this.#settings
    const isLoopback = issuer.startsWith('http:')
    const open = (this.#configuration ??= discovery(
      new URL(issuer),
      clientId,
      clientSecret,
      undefined,
      { timeout: timeoutSeconds, ...(isLoopback && { execute: [allowInsecureRequests] }) },
    ))
    try {
      return await open
    } catch (error) {
      this.#configuration = undefined
      throw new Refusal(
        'upstream',
        'The login provider does not answer',
        'Try again in a moment',
        error,
      )
    }
  }
}
