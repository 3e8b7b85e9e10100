import {
  INVALID_SPAN_CONTEXT,
  propagation,
  ProxyTracerProvider,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Span,
  type Tracer,
} from '@opentelemetry/api'
import { isUuid } from '#shared/core/ids.ts'

/** Without an SDK in the process every span is a no-op: see `startTelemetry`. */
const activeTracer = (): Tracer => trace.getTracer('memory-vault')
const noProvider = new ProxyTracerProvider().getDelegate()
const noSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT)

/** Whether an SDK takes spans. A span without one costs as much. */
const isTraced = (): boolean =>
  (trace.getTracerProvider() as Partial<ProxyTracerProvider>).getDelegate?.() !== noProvider

/** Runs work in a span of the active trace. */
export const withSpan = <Result>(
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<Result>,
): Promise<Result> =>
  isTraced()
    ? activeTracer().startActiveSpan(name, { attributes }, span => endSpanAfter(span, work))
    : work(noSpan)

type MemorySpan<Result> = {
  vault: string
  /** What a clearing clears; the name of a session may be words of a user. */
  range?: 'vault' | 'session'
  /** The records of the operation, once it has succeeded. */
  ids?: (result: Result) => readonly string[]
}

/** The most ids of a span, for a search of a thousand rows; the number of all is an attribute of its own. */
const tracedIdsMax = 64

/**
 * Runs an operation on memories in a span, by the conventions for generative AI: the store is the vault. Ids of several
 * records are in `memory.record.ids`, of which the conventions know nothing. Texts and queries, which they would have by
 * choice, never leave.
 *
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md#memory
 *
 */
export const withMemorySpan = <Result>(
  operation:
    | 'search_memory'
    | 'create_memory'
    | 'update_memory'
    | 'upsert_memory'
    | 'delete_memory',
  { vault, range, ids }: MemorySpan<Result>,
  work: () => Promise<Result>,
): Promise<Result> =>
  isTraced()
    ? withSpan(
        operation,
        {
          'gen_ai.operation.name': operation,
          'gen_ai.memory.store.id': vault,
          ...(range && { 'memory.range': range }),
        },
        async span => {
          const result = await work()
          if (ids) span.setAttributes(recordAttributes(ids(result)))
          return result
        },
      )
    : work()

function recordAttributes(all: readonly string[]): Attributes {
  // A client may have sent anything as the id of a record.
  const ids = all.filter(isUuid).slice(0, tracedIdsMax)
  const count = { 'gen_ai.memory.record.count': all.length }
  if (all.length === 1 && ids.length === 1) return { ...count, 'gen_ai.memory.record.id': ids[0] }
  return { ...count, 'memory.record.ids': ids }
}

/** Runs a request in a span of the trace its `traceparent` names, or of a new one. */
export function withRequestSpan<Result>(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  attributes: Attributes,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  if (!isTraced()) return work(noSpan)
  const parent = propagation.extract(ROOT_CONTEXT, headers)
  const options = { kind: SpanKind.SERVER, attributes }
  return activeTracer().startActiveSpan('request', options, parent, span =>
    endSpanAfter(span, work),
  )
}

async function endSpanAfter<Result>(
  span: Span,
  work: (span: Span) => Promise<Result>,
): Promise<Result> {
  try {
    return await work(span)
  } catch (error) {
    // Only the error's name: its message may quote a user's text.
    const { name } = error as Error
    span.setStatus({ code: SpanStatusCode.ERROR, message: name }).setAttribute('error.type', name)
    throw error
  } finally {
    span.end()
  }
}
