import type { Router } from '@koa/router'
import type { Context } from 'koa'
import { GeminiBody } from '#api/contract/contract.ts'
import { answerWithMemory } from '#api/proxy/answer-with-memory.ts'
import { dialects } from '#api/proxy/dialects/index.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { containsKey } from '#shared/access/key.ts'

/** Google's SDKs ask for v1beta unless told otherwise; what is asked for is what Google is asked for. */
const versions = ['v1', 'v1beta']
const actions = ['generateContent', 'streamGenerateContent']

/** Gemini's format, in one piece and as a stream. */
export function generateContent(router: Router, backend: Backend): void {
  for (const version of versions) {
    for (const action of actions) {
      const endpoint = {
        dialect: dialects.google,
        shape: GeminiBody,
        route: 'POST /v1/models',
        modelIn: modelParam,
        pathOf: (model: string) => `/${version}/models/${requireModelSlug(model)}:${action}`,
      }
      const path = `/${version}/models/:model`
      // GET /v1/models names models with their provider, and not every client escapes the slash.
      router.post(`/${version}/models/{google/}:model\\:${action}`, ctx =>
        answerWithMemory(ctx, backend, endpoint),
      )
      // The second colon is no parameter; the route is known, listed and logged as the contract writes it.
      router.stack.at(-1)!.path = `${path}:${action}`
    }
  }
}

/** With its provider or without, as everywhere. */
const modelParam = (ctx: Context): string => (ctx as unknown as ModelParams).params.model

type ModelParams = { params: { model: string } }

/** The model becomes part of a path at the provider. */
function requireModelSlug(model: string): string {
  const isName = /^[A-Za-z0-9._-]{1,128}$/.test(model) && !/^\.+$/.test(model)
  if (isName && !containsKey(model)) return model
  throw new Refusal('missing', 'No such model', 'Its name has letters, digits, ".", "_" and "-"')
}
