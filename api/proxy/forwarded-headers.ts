import type { IncomingHttpHeaders } from 'node:http'
import { containsKey } from '#shared/access/key.ts'

/**
 * Headers of a request that no provider gets. All others go through: what a provider or a gateway charges, ranks, caches or
 * traces by has a new name every year.
 */
const keptNames = new Set([
  // Of the connection (RFC 9110, 7.6.1), with those that `Connection` names.
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'http2-settings',
  'host',
  // Of the body and its coding, which this service sets itself; a digest or signature is of the bytes that the client sent.
  'content-length',
  'content-encoding',
  'accept-encoding',
  'content-md5',
  'digest',
  'content-digest',
  'repr-digest',
  'signature',
  'signature-input',
  // Credentials: of the service, or set by the service for the one provider that they are meant for.
  'authorization',
  'api-key',
  'x-api-key',
  'x-goog-api-key',
  'x-provider-key',
  'x-dashboard-key',
  'cookie',
  'cookie2',
  'set-cookie',
  // Switches of the service.
  'idempotency-key',
  'x-session-id',
  'x-embedding-model',
  'x-provider',
  'x-request-id',
  // They would make another request of an allowed one: Google reads the first.
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  // Of a page in a browser that calls this service.
  'origin',
  'referer',
  // Where the call came from, and whom a proxy or load balancer in front has signed in.
  'forwarded',
  'via',
  'cdn-loop',
  'true-client-ip',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-remote-ip',
  'x-remote-user',
  'remote-user',
  'client-cert',
  'client-cert-chain',
  'x-client-cert',
  'x-amzn-trace-id',
  'x-cloud-trace-context',
])

/** Beginnings of such names, for the same reasons; `cf-aig-` is for Cloudflare's AI gateway. */
const keptBeginnings =
  /^(?:x-memory-|x-admin-|x-svc-|proxy-|sec-|x-forwarded-|x-original-|x-rewrite-|cf-(?!aig-)|fastly-|x-vercel-|x-appengine-|x-envoy-|x-azure-|x-arr-|x-ms-client-principal|x-ms-token-|x-amzn-oidc-|x-goog-iap-|x-goog-authenticated-user-|x-auth-request-|x-authenticated-|x-ssl-|ssl-client-|x-client-cert-)/

/** Whether a header goes to the provider, by its name in lower case. */
export const isForwardedHeader = (name: string): boolean =>
  !keptNames.has(name) && !keptBeginnings.test(name)

/** The headers of a request that its provider gets; none that holds a Memory Key. */
export function pickForwardedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const ofConnection = new Set(
    (headers.connection ?? '').split(',').map(name => name.trim().toLowerCase()),
  )
  const picked: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (typeof value !== 'string' || value === '' || ofConnection.has(name)) continue
    if (isForwardedHeader(name) && !containsKey(name) && !containsKey(value)) picked[name] = value
  }
  return picked
}
