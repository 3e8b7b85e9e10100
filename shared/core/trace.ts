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

/** Without an SDK in the process every span is a no-op; the service itself ships none. */
const activeTracer = (): Tracer => trace.getTracer('memory-vault')
const noProvider = new ProxyTracerProvider().getDelegate()
const noSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT)

/** Whether spans reach anyone; a span that does not costs as much as one that does. */
const isTraced = (): boolean =>
  (trace.getTracerProvider() as Partial<ProxyTracerProvider>).getDelegate?.() !== noProvider

/** The request's headers, as Node reads them: they continue a trace that the client began. */
type Carrier = Readonly<Record<string, string | string[] | undefined>>

/** Runs work in a span of the active trace; the span fails with the work. */
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
  headers: Carrier,
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
