/** The operator's additions; each is a name, or the beginning of names. */
export type HeaderSettings = {
  /** Go to providers, whatever their shape. */
  pass: readonly string[]
  /** Stay here. */
  keep: readonly string[]
}

/**
 * Headers of a request that no provider gets. All others go through: what a provider or a gateway charges, ranks,
 * caches or traces by has a new name every year.
 */
const keptNames = new Set(
  [
    // Headers of the connection (RFC 9110, 7.6.1), with those that `Connection` names.
    'connection keep-alive te trailer transfer-encoding upgrade expect http2-settings host',
    // Headers of the body and its coding, which this service sets itself; a digest or signature is of the client's bytes.
    'content-length content-encoding accept-encoding content-md5 digest content-digest repr-digest signature',
    'signature-input',
    // Credentials: of the service, or set by the service for the one provider that they are meant for.
    'authorization api-key x-api-key x-goog-api-key x-provider-key x-dashboard-key cookie cookie2 set-cookie',
    // Switches of the service.
    'idempotency-key x-session-id x-embedding-model x-provider x-request-id',
    // They would make another request of an allowed one: Google reads the first.
    'x-http-method-override x-http-method x-method-override',
    // Headers of a page in a browser that calls this service.
    'origin referer',
    // Where the call came from, and whom a proxy or load balancer in front has signed in.
    'forwarded x-forwarded via cdn-loop client-cert client-cert-chain x-client-cert x-amzn-trace-id',
    'x-cloud-trace-context',
  ].flatMap(names => names.split(' ')),
)

/**
 * Beginnings of such names, for the same reasons. Open WebUI (`utils/headers.py`) and LiteLLM
 * (`proxy/litellm_pre_call_utils.py`) name the person who is signed in there, with the email address.
 */
const keptBeginnings =
  /^(?:x-memory-|x-admin-|x-svc-|proxy-|sec-|remote-|tailscale-|teleport-|x-vouch-|x-pomerium-|x-authentik-|x-forwarded-|x-original-|x-rewrite-|cf-|cloudfront-|fastly-|akamai-|x-akamai-|x-vercel-|x-appengine-|x-envoy-|x-azure-|x-arr-|x-ms-client-principal|x-amzn-oidc-|x-goog-iap-|x-goog-authenticated-|x-auth-request-|x-authenticated-|x-ssl-|ssl-client-|x-client-cert-|x-openwebui-user-|x-litellm-user_api_key_)/

/**
 * A part of a name that says that a header names a person or an address, or is a credential: access proxies and clouds
 * have names of their own, of the same words.
 */
const keptWords = new Set(
  (
    'address addr assertion authorization consumer credential csrf email group groups identity idtoken ip jwt ' +
    'login mail principal subject token uid upn user userid userinfo username xsrf csrftoken'
  ).split(' '),
)

/** Names of providers and gateways that have such a word, and of programs. */
const providerBeginnings =
  /^(?:anthropic-|cf-aig-|chatgpt-|copilot-|helicone-|openai-|x-goog-user-project$|x-openrouter-|x-portkey-|x-stainless-|(?:x-)?user-agent$)/

/** A signed assertion, whatever the name: its header begins with `{"`. */
const jwt = /^(?:bearer\s+)?eyJ[\w-]+\.[\w-]+\.[\w-]*$/i

/** Whether a header goes to the provider. @param name in lower case */
export function isForwardedHeader(
  name: string,
  value = '',
  { pass, keep }: HeaderSettings = { pass: [], keep: [] },
): boolean {
  const isIn = (list: readonly string[]): boolean =>
    list.some(one => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one))
  if (keptNames.has(name) || name.startsWith('x-memory-') || isIn(keep)) return false
  if (isIn(pass)) return true
  if (jwt.test(value)) return false
  if (providerBeginnings.test(name)) return true
  return !keptBeginnings.test(name) && !name.split(/[-_.]/).some(word => keptWords.has(word))
}
