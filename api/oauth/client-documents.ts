import type { Agent } from 'undici'
import {
  publicLookup,
  requirePublicUrl,
  type AddressPolicy,
} from '#shared/events/webhooks/ssrf-guard.ts'

const timeoutMs = 2_500

/**
 * Fetches metadata documents of clients (draft-ietf-oauth-client-id-metadata-document): from public addresses only,
 * whatever a name resolves to, without redirects. The provider bounds them to 5 KiB and 2.5 s.
 */
export function createDocumentFetch(
  policy: AddressPolicy,
): (url: string | URL, init?: RequestInit) => Promise<Response> {
  let dispatcher: Promise<Agent> | undefined
  const open = async () => {
    const { Agent } = await import('undici')
    return new Agent({
      connect: { timeout: timeoutMs, lookup: publicLookup(policy) },
      headersTimeout: timeoutMs,
      bodyTimeout: timeoutMs,
      keepAliveTimeout: 1,
    })
  }
  return async (url, init) => {
    const { fetch } = await import('undici')
    const options = { ...init, redirect: 'manual', dispatcher: await (dispatcher ??= open()) }
    return (await fetch(requirePublicUrl(String(url), policy), options as never)) as never
  }
}
