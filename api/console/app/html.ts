/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
import htm from 'htm'
import { h, type ComponentChildren, type FunctionComponent, type VNode } from 'preact'

export type View = VNode
export type Children = ComponentChildren

type HtmlTag = (strings: TemplateStringsArray, ...values: unknown[]) => View

/** Markup as a template. Inserted values become text or attributes, never markup. */
export const html = (htm as unknown as { bind(make: typeof h): HtmlTag }).bind(h)

/** A component with its props, which TypeScript checks here; inside a template it would not. */
export const renderComponent = <Props extends object>(
  component: FunctionComponent<Props>,
  props: NoInfer<Props> & { key?: string | number },
): View => h(component, props) as View
