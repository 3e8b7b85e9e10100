import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { ProxyEndpoint } from '#api/proxy/proxy-call.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { containsKey } from '#shared/access/key.ts'

/** The endpoints of `contract/proxy.md`, each in the format of a provider. */
export function proxy(router: Router, backend: ApiBackend): void {
  for (const endpoint of bodyEndpoints) {
    const [method, path] = endpoint.route.split(' ') as [string, string]
    router.register(path, [method], ctx => answerWithMemory(ctx, backend, endpoint))
  }
  // Gemini's path names the model.
  for (const version of versions) {
    for (const action of actions) {
      const endpoint: ProxyEndpoint = {
        dialect: dialects.google,
        route: 'POST /v1/models',
        modelFromPath: modelParam,
        providerPath: (model: string) => `/${version}/models/${requireModelSlug(model)}:${action}`,
      }
      const path = `/${version}/models/:model`
      // GET /v1/models names models with their provider, and not every client escapes the slash.
      router.post(`/${version}/models/{google/}:model\\:${action}`, ctx =>
        answerWithMemory(ctx, backend, endpoint),
      )
      // The second colon is no parameter; the route is listed and logged as the contract writes it.
      router.stack.at(-1)!.path = `${path}:${action}`
    }
  }
}

/** Endpoints whose body names the model: models of every provider, of those that serve Responses, and Anthropic's. */
const bodyEndpoints: readonly ProxyEndpoint[] = [
  {
    dialect: dialects.openai,
    route: 'POST /v1/chat/completions',
    providerPath: () => '/chat/completions',
  },
  {
    dialect: dialects.responses,
    route: 'POST /v1/responses',
    providerPath: () => '/responses',
  },
  {
    dialect: dialects.anthropic,
    route: 'POST /v1/messages',
    providerPath: () => '/v1/messages',
  },
]

/** Google's SDKs call v1beta by default; Google is called with the version of the request. */
const versions = ['v1', 'v1beta']
const actions = ['generateContent', 'streamGenerateContent']

/** With or without its provider. */
const modelParam = (ctx: Context): string =>
  (ctx as unknown as { params: { model: string } }).params.model

/** The model becomes part of a path at the provider. */
function requireModelSlug(model: string): string {
  const isName = /^[A-Za-z0-9._-]{1,128}$/.test(model) && !/^\.+$/.test(model)
  if (isName && !containsKey(model)) return model
  throw new Refusal('missing', 'No such model', 'Its name has letters, digits, ".", "_" and "-"')
}
