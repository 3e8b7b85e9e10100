import { Readable } from 'node:stream'
import type { Context } from 'koa'
import { bytesIn } from '#api/edge/lines.ts'
import { readBytes } from '#api/proxy/body.ts'
import { callerOfCall, payingKey } from '#api/proxy/credentials.ts'
import { readPlain } from '#api/proxy/dialects/plain.ts'
import { formBytesMax, formIn } from '#api/proxy/form.ts'
import { createClock, type Clock } from '#api/proxy/headers.ts'
import { endRelayed, hangUp, relay } from '#api/proxy/relay.ts'
import { targetOf } from '#api/proxy/target.ts'
import { recordCall } from '#shared/billing/meter.ts'
import { requireBalance } from '#shared/billing/requirements.ts'
import type { Backend } from '#shared/backend.ts'
import { Refusal } from '#shared/core/errors.ts'
import { mintId } from '#shared/core/ids.ts'
import type { Caller } from '#shared/access/caller.ts'
import { providerKeysOf } from '#shared/access/provider-key.ts'
import { prefixed, resolveModel } from '#shared/models/resolve-model.ts'
import type { Shape } from '#shared/core/shape.ts'
import { wellFormed } from '#shared/core/sanitize-text.ts'

/** A path that goes to a provider without memory. */
export type Passage = {
  /** At the provider, below the path of its OpenAI-compatible API. */
  path: string
  /** What of the body is judged. */
  shape: Shape<unknown>
  /** Whether the body is a form, which is not held, or JSON. */
  form: boolean
}

/** A body that has told which model it is for. */
type Told = {
  model: string
  /** The bytes for the provider, with the model as it knows it. */
  body(name: string): Buffer | Readable
  /** How long they are, where that is known before they are sent. */
  length?: (name: string) => number
  /** Lets go of what was not sent. */
  drop(): Promise<void>
}

/** Passes a request on to the provider of its model, and the answer back, byte for byte. */
export async function passOn(ctx: Context, backend: Backend, passage: Passage): Promise<void> {
  const clock = createClock()
  try {
    const caller = await callerOfCall(ctx, backend)
    refuseRepeatable(ctx)
    requireBalance(caller)
    const told = passage.form ? await toldByForm(ctx, passage) : await toldByJson(ctx, passage)
    try {
      await forward(ctx, backend, { caller, told, path: passage.path, clock })
    } finally {
      await told.drop()
    }
    endRelayed(ctx)
  } finally {
    clock.tell(ctx)
  }
}

type Forwarding = { caller: Caller; told: Told; path: string; clock: Clock }

async function forward(
  ctx: Context,
  backend: Backend,
  { caller, told, path, clock }: Forwarding,
): Promise<void> {
  const model = await resolveModel(backend, told.model, 'openai', () =>
    providerKeysOf(backend, caller.account),
  )
  const key = await payingKey(ctx, backend, caller, model.provider)
  const { url, headers } = targetOf(ctx, backend.config, {
    model,
    format: 'openai',
    path,
    ...(key !== undefined && { key }),
  })
  const left = hangUp(ctx)
  const length = told.length?.(model.name)
  const asking = backend.upstream.post({
    provider: model.provider,
    url,
    headers: { ...headers, ...(length !== undefined && { 'content-length': String(length) }) },
    body: told.body(model.name),
    signal: left,
  })
  const answer = await clock.waiting(asking).catch((error: unknown) => {
    if (!left.aborted) throw error
  })
  recordCall(backend, caller, {
    id: mintId(),
    kind: 'pass-through',
    model: prefixed(model),
    session: null,
    inputTokens: 0,
    outputTokens: 0,
    recalledTokens: 0,
  })
  if (!answer) {
    ctx.respond = false
    ctx.status = 499
    return
  }
  clock.tell(ctx)
  const { clientPatienceMs: patienceMs } = backend.config
  await relay(ctx, answer, { hear() {}, patienceMs })
}

/** Its answer would have to be kept, and recordings and images are too large for that. */
function refuseRepeatable(ctx: Context): void {
  if (ctx.get('idempotency-key') === '') return
  throw new Refusal(
    'invalid',
    'Idempotency-Key is not taken here: these answers are not kept',
    'Leave it out; sent again, the provider is asked again',
  )
}

async function toldByJson(ctx: Context, { shape }: Passage): Promise<Told> {
  const bytes = await readBytes(ctx)
  const request = readPlain(bytes.length > 0 ? bytes : Buffer.from('{}'))
  shape.check(wellFormed({ model: request.model }))
  return { model: request.model ?? '', body: request.write, drop: async () => {} }
}

async function toldByForm(ctx: Context, { shape }: Passage): Promise<Told> {
  if (!ctx.is('multipart/form-data')) {
    throw new Refusal(
      'unsupported',
      'This Content-Type is not supported',
      'Send multipart/form-data with file and model',
    )
  }
  if (!/^(?:identity)?$/i.test(ctx.get('content-encoding').trim())) {
    throw new Refusal('unsupported', 'This Content-Encoding is not supported', 'Send it plain')
  }
  const declared = ctx.request.length
  if ((declared ?? 0) > formBytesMax) {
    throw new Refusal('too-large', 'The form is larger than 25 MiB')
  }
  const form = await formIn(bytesIn(ctx, 'identity'), ctx.get('content-type'))
  shape.check(wellFormed({ model: form.model, file: '' }))
  const changed = (name: string): string | undefined => (name === form.model ? undefined : name)
  return {
    model: form.model,
    body: name => Readable.from(form.bytes(changed(name)), { objectMode: false }),
    drop: form.drop,
    ...(declared !== undefined && {
      length: name => declared + (changed(name) === undefined ? 0 : form.growth(name)),
    }),
  }
}
