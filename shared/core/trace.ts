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

/** Without an SDK in the process every span is a no-op; the service ships none. */
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
    span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).name })
    throw error
  } finally {
    span.end()
  }
}
