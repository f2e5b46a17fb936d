"""The parsed chat template, rewritten before it is compiled, so that its environment sees all it does.

One invariant: the rewritten template writes what the original writes; but each loop turn calls `tick`, each text
goes out through `finalize`, and each list, slice or concatenation is made through a call, which is paid for.
"""

from jinja2 import Environment, nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer


def watched(tree: nodes.Template, environment: Environment) -> nodes.Template:
    """The same template with every loop turn, written text and made value in the hands of the environment."""
    _Watch().visit(tree)
    tree.set_environment(environment)
    return tree


class Generation(Extension):
    """The tag pair with which templates mark what the assistant wrote; here it only passes its body on."""

    tags = {"generation"}

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body alone."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def _through(method: str, *args: nodes.Expr) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), list(args), [], None, None)


class _Watch(NodeTransformer):
    """Sends through the environment what Jinja would do on its own."""

    def visit_TemplateData(self, node: nodes.TemplateData) -> nodes.Node:
        return nodes.Const(node.data)

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_through("tick")))
        if node.test is not None:
            node.test = nodes.And(_through("tick"), node.test)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _through("concat_all", *node.nodes)

    def _weighed(self, node: nodes.Expr) -> nodes.Node:
        self.generic_visit(node)
        return _through("same", node)

    visit_List = visit_Dict = _weighed

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        return self._weighed(node) if node.ctx == "load" else self.generic_visit(node)

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        return self._weighed(node) if isinstance(node.arg, nodes.Slice) else self.generic_visit(node)
