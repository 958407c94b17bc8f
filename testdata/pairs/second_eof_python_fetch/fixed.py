"""Gets four forecasts from a web server. The server says how long a page is."""

import http.client
import http.server
import os
import socket


class Forecast(http.server.BaseHTTPRequestHandler):
    """Keeps a connection open for a while, in case that there are more questions."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    timeout = 0.3

    def do_GET(self):
        body = f"{sum(self.path.encode()) % 30} degrees\n".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Forecast)
child = os.fork()
if child == 0:
    server.serve_forever()
server.socket.close()


def get(name):
    with socket.create_connection(server.server_address) as connection:
        connection.sendall(b"GET /%s HTTP/1.1\r\nHost: weather\r\n\r\n" % name)
        answer = http.client.HTTPResponse(connection)
        answer.begin()
        # As many bytes as the server said.
        return answer.read().decode()


for name in (b"north", b"east", b"south", b"west"):
    print(get(name), end="")
os.kill(child, 9)
os.wait()
