import type { ClientAuth, Configuration, IDToken } from 'openid-client'
import type { OidcSettings } from '#shared/core/config.ts'
import { Refusal } from '#shared/core/errors.ts'
import { refusal } from '#shared/core/refusal.ts'

/** What a sign-in under way has to be answered with. */
export type LoginState = {
  state: string
  nonce: string
  verifier: string
  /** The sign-in of an application that goes on afterwards; missing: the console's. */
  application?: string
}

const timeoutSeconds = 10

/** Apple answers with a form that its page sends, where an email is asked for: developer.apple.com, "Request an authorization". */
const formIssuer = 'https://appleid.apple.com'

/** How the secret of a client is sent, the first that a provider names. Who names none takes `client_secret_basic` (OpenID Connect Discovery, section 3). */
const secretMethods = ['client_secret_post', 'client_secret_basic'] as const

/** An OpenID provider, found by discovery at its first use. */
export class IdentityProvider {
  readonly #settings: OidcSettings
  readonly #redirectUri: string
  #configuration: Promise<Configuration> | undefined
  /** What the provider has refused, though it may name it: of a client Authelia and Hydra take the one that it was made with. */
  readonly #refusedMethods = new Set<string>()

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
      scope: this.#scope(configuration),
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
      state,
      nonce,
      ...(new URL(this.#settings.issuer).origin === formIssuer && { response_mode: 'form_post' }),
    })
    return { url: url.href, state, nonce, verifier }
  }

  /** Some providers tell groups only where the scope of that name is asked for. */
  #scope(configuration: Configuration): string {
    const { groupsClaim } = this.#settings
    const { scopes_supported: known } = configuration.serverMetadata()
    const asksGroups = groupsClaim !== null && known?.includes(groupsClaim)
    return asksGroups ? `openid email ${groupsClaim}` : 'openid email'
  }

  /**
   * The person that the provider has sent back: the email, folded, and the groups; null where none are read.
   *
   * @param query of the request
   * @throws Refusal `forbidden` when the answer is not one to this state, or its email is not verified; `upstream` for
   *   what the operator has to mend. Its cause says what was wrong.
   */
  async finish(
    query: string,
    { state, nonce, verifier }: LoginState,
  ): Promise<{ email: string; groups: string[] | null }> {
    const oidc = await import('openid-client')
    const configuration = await this.#open()
    const url = new URL(this.#redirectUri)
    url.search = query
    const exchange = () =>
      oidc.authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      })
    try {
      const tokens = await exchange().catch((error: unknown) => {
        if (codeOf(error) !== 'invalid_client' || !this.#tryOtherMethod(configuration)) throw error
        return exchange()
      })
      const claims = tokens.claims()!
      // Userinfo is asked for what this token lacks, email or groups, unless it says that the email is not verified.
      const email = this.#verifiedEmail([claims])
      const { groupsClaim } = this.#settings
      const knowsGroups = groupsClaim === null || groupsClaim in claims
      const { userinfo_endpoint: userinfoEndpoint } = configuration.serverMetadata()
      if (email !== undefined && (knowsGroups || !userinfoEndpoint))
        return { email, groups: this.#groupsOf([claims]) }
      if (claims.email_verified !== false && userinfoEndpoint) {
        const userinfo = await oidc.fetchUserInfo(configuration, tokens.access_token, claims.sub)
        const withItsWord = { ...claims, email_verified: userinfo.email_verified }
        const verified = email ?? this.#verifiedEmail([userinfo, withItsWord])
        if (verified !== undefined)
          return { email: verified, groups: this.#groupsOf([claims, userinfo]) }
      }
    } catch (error) {
      throw signInRefusal(error)
    }
    throw refusal('forbidden', 'emailNotVerified')
  }

  /**
   * The first email of these claims that is verified, folded. A provider says so by `true`, Cognito and Apple by
   * `"true"`, Entra by `xms_edov`; where one says nothing the operator may vouch for it.
   */
  #verifiedEmail(given: readonly Partial<IDToken>[]): string | undefined {
    for (const { email, email_verified: said, xms_edov: owned } of given) {
      if (typeof email !== 'string' || !emailPattern.test(email)) continue
      const isVerified = [said, said === undefined ? owned : undefined].some(value =>
        [true, 'true', 1, '1'].includes(value as never),
      )
      if (isVerified || (said === undefined && this.#settings.vouches)) return foldEmail(email)
    }
    return undefined
  }

  /**
   * The groups that the first of these claims names: texts, or objects with a name.
   *
   * @throws Refusal `forbidden` where Entra leaves them out, since they are too many for a token: not to know them must
   *   not take roles away.
   */
  #groupsOf(given: readonly Record<string, unknown>[]): string[] | null {
    const { groupsClaim } = this.#settings
    if (groupsClaim === null) return null
    const found = given.find(claims => groupsClaim in claims)?.[groupsClaim]
    const elsewhere = given.some(claims => groupsClaim in Object(claims._claim_names))
    if (found === undefined && elsewhere) throw refusal('forbidden', 'groupsNotNamed')
    return (Array.isArray(found) ? found : [found]).flatMap(one => {
      const name: unknown = typeof one === 'object' ? (one as { name?: unknown } | null)?.name : one
      return typeof name === 'string' && name !== '' ? [name.slice(0, 256)] : []
    })
  }

  /** Sends the secret as the provider takes it. */
  readonly #authenticate: ClientAuth = (server, client, body, headers) => {
    const { ClientSecretBasic, ClientSecretPost } = this.#methods!
    const method = this.#methodFor(server.token_endpoint_auth_methods_supported)
    const send = method === 'client_secret_post' ? ClientSecretPost : ClientSecretBasic
    send(this.#settings.clientSecret)(server, client, body, headers)
  }

  #methods:
    | Pick<typeof import('openid-client'), 'ClientSecretBasic' | 'ClientSecretPost'>
    | undefined

  #methodFor(supported: readonly string[] = ['client_secret_basic']): string | undefined {
    return secretMethods.find(one => supported.includes(one) && !this.#refusedMethods.has(one))
  }

  /** @returns false when there is none: then all may be tried again, with another secret. */
  #tryOtherMethod(configuration: Configuration): boolean {
    const { token_endpoint_auth_methods_supported: supported } = configuration.serverMetadata()
    const refused = this.#methodFor(supported)
    if (refused !== undefined) this.#refusedMethods.add(refused)
    if (this.#methodFor(supported) !== undefined) return true
    this.#refusedMethods.clear()
    return false
  }

  async #open(): Promise<Configuration> {
    const oidc = await import('openid-client')
    const { discovery, allowInsecureRequests } = oidc
    this.#methods = oidc
    const { issuer, clientId, clientSecret } = this.#settings
    const isLoopback = issuer.startsWith('http:')
    const open = (this.#configuration ??= discovery(
      new URL(issuer),
      clientId,
      clientSecret,
      this.#authenticate,
      { timeout: timeoutSeconds, ...(isLoopback && { execute: [allowInsecureRequests] }) },
    ))
    try {
      return await open
    } catch (error) {
      this.#configuration = undefined
      throw refusal('upstream', 'loginProviderSilent', {}, error)
    }
  }
}

/** One mailbox without white space, control and format characters. */
const emailPattern = /^[^\s@\p{Cc}\p{Cf}]{1,256}@[^\s@\p{Cc}\p{Cf}]{1,256}$/u

/**
 * An email with the letters of ASCII in lower case, as those here are. Others stay as they are, since `toLowerCase`
 * makes a `k` of U+212A, and so one person's email of another's.
 */
const foldEmail = (email: string): string =>
  email.replaceAll(/[A-Z]+/g, letters => letters.toLowerCase())

/** The code of an error of OAuth. */
const codeOf = (error: unknown): unknown => (Object(error) as { error?: unknown }).error

/** What a person is told; the cause is for the log. */
function signInRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error
  if (codeOf(error) === 'access_denied')
    return new Refusal('forbidden', 'The provider did not let you in', 'Sign in again', error)
  if (codeOf(error) === 'invalid_client')
    return refusal('upstream', 'loginProviderRefuses', {}, error)
  return new Refusal('forbidden', 'The sign-in was not confirmed', 'Sign in again', error)
}
